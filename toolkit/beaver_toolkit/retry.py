"""Whether and when work that failed is repeated. Pure: no clock, no network."""

import math
import random
import re
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often and after which waits a request is repeated.

    Attributes:
        statuses: the HTTP statuses of failures that may pass without a fix.
        most: how many times it is repeated.
        first: the first wait in seconds; each further one is twice as long. The server's Retry-After has precedence.
        longest: the longest wait in seconds that a server may ask for.
    """

    statuses: Container[int]
    most: int
    first: float
    longest: float = math.inf

    def wait(self, status: int, retry_after: str | None, *, attempt: int, now: datetime) -> float | None:
        """Return how many seconds to wait before the server is asked again, or `None` for never.

        Args:
            status: the HTTP status of the refusal.
            retry_after: the header as it was sent: seconds or an HTTP date; anything else counts as absent.
            attempt: how many times the server was asked again before, from 0.
            now: the time of day.
        """
        if attempt >= self.most or status not in self.statuses:
            return None
        wait = _seconds(retry_after, now)
        if wait is None:
            wait = self.first * 2.0**attempt
        return wait if wait <= self.longest else None


def jittered(attempt: int, *, first: float, longest: float) -> float:
    """Return the seconds after which work that failed is tried again, so that many workers do not try at once.

    Args:
        attempt: how often it was tried, from 1.
        first: the pause after the first attempt; each further one is twice as long.
        longest: the longest pause. The half or more of the pause is sure, and the rest is left to chance.
    """
    pause = min(longest, first * 2.0 ** min(attempt - 1, 64))
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def _seconds(retry_after: str | None, now: datetime) -> float | None:
    text = (retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
