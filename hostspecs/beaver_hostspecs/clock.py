"""The source of time, which a test can replace."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time of day and a time that never runs backwards."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()
