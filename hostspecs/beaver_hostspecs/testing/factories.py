"""Records with harmless defaults, for tests that care about one field only."""

from typing import Any

from beaver_hostspecs.testing.clocks import NOON
from beaver_hostspecs.turns import Answer, Compaction, ToolResult, Turn


def make_turn(**overrides: object) -> Turn:
    """Return a turn; `overrides` are fields of `Turn`."""
    fields: dict[str, Any] = {
        "session": "session-1",
        "id": "turn-1",
        "prompt": "What did we decide?",
        "when": NOON,
        **overrides,
    }
    return Turn(**fields)


def make_answer(**overrides: object) -> Answer:
    """Return an answer; `overrides` are fields of `Answer`."""
    fields: dict[str, Any] = {"text": "We decided to wait.", "when": NOON, **overrides}
    return Answer(**fields)


def make_tool_result(**overrides: object) -> ToolResult:
    """Return the result of a tool call; `overrides` are fields of `ToolResult`."""
    fields: dict[str, Any] = {
        "call_id": "call-1",
        "tool": "read_file",
        "arguments": {"path": "notes.txt"},
        "output": "a note",
        **overrides,
    }
    return ToolResult(**fields)


def make_compaction(**overrides: object) -> Compaction:
    """Return a compaction; `overrides` are fields of `Compaction`."""
    fields: dict[str, Any] = {"session": "session-1", "when": NOON, **overrides}
    return Compaction(**fields)
