"""Records with harmless defaults, for tests that care about one field only."""

from datetime import UTC, datetime, timedelta
from typing import Any

from beaver_hostspecs.turns import Answer, Compaction, ToolResult, Turn

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
"""The time in tests that need no particular one."""


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


class FrozenClock:
    """A `Clock` whose two times move only by `advance`, and then together."""

    def __init__(self, now: datetime = NOON, monotonic: float = 1000.0) -> None:
        if now.utcoffset() is None:
            raise ValueError("now must have a time zone")
        self._now = now.astimezone(UTC)
        self._monotonic = monotonic

    def now(self) -> datetime:
        """Return the time of day, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds that only `advance` moves."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Time does not run backwards: a negative number raises `ValueError`."""
        if seconds < 0:
            raise ValueError("a clock only moves forwards")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
