"""The outcome of a tool call, in one line of a conversation. Pure."""

import json

from beaver_hooks.tools import ToolOutcome
from beaver_hooks.tools.result_text import one_line
from beaver_hostspecs import thaw


def tool_line(outcome: ToolOutcome) -> str:
    """Return the tool, its arguments unless it is private, and the outcome."""
    given = "" if outcome.private else one_line(" ".join(map(_value, thaw(outcome.arguments).values())))
    call = " ".join(filter(None, (outcome.call.name, given)))
    ended = "done" if outcome.error is None else f"failed, {one_line(outcome.error)}"
    return f"  [{call}: {ended}]"


def _value(value: object) -> str:
    """Return an argument for people: a word unchanged, a longer value in quotes or as JSON."""
    if isinstance(value, str) and value and not any(map(str.isspace, value)):
        return value
    return json.dumps(value, ensure_ascii=False)
