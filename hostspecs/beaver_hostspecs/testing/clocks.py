"""A clock that moves only when a test advances it."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
"""The time in tests that need no particular one."""


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
