"""Reads the fields of hook events, which may be of any type, and makes the answers for Claude Code. Pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from beaver_hooks.turns.fields import ToolFields
from beaver_hostspecs import BeaverError
from beaver_hostspecs.naming import type_name

Event = Mapping[str, Any]
Output = dict[str, Any]

MOST_MILLISECONDS = 1e12
MOST_SAID = 2000
"""The most characters of a sentence for the user."""

CUT = "\n[Cut here: this is the most that Claude Code accepts.]"

OUTSIDE = ("WebFetch", "WebSearch")
"""Claude Code's own tools whose output comes from strangers; that of MCP servers may, too."""


def text_of(event: Event, key: str) -> str | None:
    """Return a text that is not blank, or `None`."""
    value = event.get(key)
    return value if isinstance(value, str) and value.strip() else None


def tool_fields(event: Event) -> ToolFields | None:
    """Return the fields of a tool call in an event, or `None` if the event does not name it."""
    tool, call_id = text_of(event, "tool_name"), text_of(event, "tool_use_id")
    if tool is None or call_id is None:
        return None
    arguments = event.get("tool_input")
    fields = ToolFields(tool=tool, call_id=call_id, arguments=arguments if isinstance(arguments, Mapping) else {})
    fields["external"] = tool in OUTSIDE or tool.startswith("mcp__")
    fields["duration"] = _duration(event.get("duration_ms"))
    if event.get("hook_event_name") == "PostToolUse":
        fields["output"] = event.get("tool_response")
    else:
        fields["error"] = text_of(event, "error") or "failed"
    return fields


def context(name: str, *said: str) -> Output:
    """Return the answer to an event that adds texts to the context; `{}` if there are none."""
    text = "\n\n".join(each for each in said if each)
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}} if text else {}


def length(text: str) -> int:
    """Return the length of a text as Claude Code counts it, in UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return a text, cut to `most` with a note at its end if it is longer."""
    if length(text) <= most:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * (most - len(CUT))]
    return kept.decode("utf-16-le", "ignore") + CUT


def why(error: Exception) -> str:
    """Return the reason for a blocked prompt; without the text of an error that may be a stranger's."""
    what = cut(str(error), MOST_SAID) if isinstance(error, BeaverError) else f"a plugin raised {type_name(error)}"
    return (
        f"Beaver Hooks: the prompt was stopped, because a required memory plugin failed: {what}. `beaver doctor` shows"
        " the details; `beaver hooks uninstall claude-code` removes the hooks."
    )


def unstored(plugins: Mapping[str, str]) -> str:
    """Return the sentence about plugins that did not confirm a compaction, each with the reason."""
    said = cut(", ".join(f"{name} ({reason})" for name, reason in plugins.items()), MOST_SAID)
    return (
        "Beaver Hooks: before this compaction, these plugins did not confirm that they have stored what was said:"
        f" {said}. `beaver doctor` shows the details."
    )


def _duration(milliseconds: object) -> timedelta | None:
    if isinstance(milliseconds, int | float) and 0 <= milliseconds <= MOST_MILLISECONDS:
        return timedelta(milliseconds=milliseconds)
    return None
