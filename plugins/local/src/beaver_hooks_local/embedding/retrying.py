"""Whether and when a provider is asked again. Pure: no clock, no network."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_RETRIES = 2
LONGEST_WAIT = 30.0
"""Seconds: whoever is asked to wait longer gives up at once."""

_BUSY = 429
_SERVER = range(500, 600)
_SECONDS = re.compile(r"[0-9]{1,9}")
_FIRST = 0.25


def wait_seconds(status: int, retry_after: str | None, *, attempt: int, now: datetime) -> float | None:
    """Return how many seconds to wait before asking again, or `None` for never.

    Args:
        status: the HTTP status of the refusal.
        retry_after: the header as it was sent: seconds or an HTTP date. Without it, and for what is neither, the wait
            doubles with every attempt.
        attempt: how often the provider was asked again before, from 0.
        now: the time of day.
    """
    if attempt >= MOST_RETRIES or not (status == _BUSY or status in _SERVER):
        return None
    wait = _asked(retry_after, now)
    if wait is None:
        return _FIRST * 2.0**attempt
    return wait if wait <= LONGEST_WAIT else None


def _asked(retry_after: str | None, now: datetime) -> float | None:
    text = (retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
