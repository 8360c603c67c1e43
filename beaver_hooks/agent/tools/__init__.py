"""The agent's tools: its own and those of the plugins, called as the model asks for them.

`arguments` reads what the model wrote, `rendering` writes what the model reads, `outcomes` holds the records, `box`
runs the calls, `session_search` is the one built-in tool.
"""

from beaver_hooks.agent.tools.box import ToolBox
from beaver_hooks.agent.tools.outcomes import BuiltInTool, OnTool, ToolOutcome
from beaver_hooks.agent.tools.session_search import SessionHit, SessionSearch, session_search_tool

__all__ = ["BuiltInTool", "OnTool", "SessionHit", "SessionSearch", "ToolBox", "ToolOutcome", "session_search_tool"]
