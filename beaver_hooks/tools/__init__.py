"""Runs the tools of the plugins and of the agent, for the agent and for adapters.

`arguments` parses the model's arguments, `result_text` writes results for the model, `outcomes` has the records, `box`
runs the calls, `session_search` is the one built-in tool.
"""

from beaver_hooks.tools.box import ToolBox
from beaver_hooks.tools.outcomes import BuiltInTool, OnTool, ToolOutcome
from beaver_hooks.tools.session_search import SessionHit, SessionSearch, session_search_tool

__all__ = ["BuiltInTool", "OnTool", "SessionHit", "SessionSearch", "ToolBox", "ToolOutcome", "session_search_tool"]
