"""How long to wait before a busy provider is asked again. Pure: no clock, no network."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BUSY = frozenset({429, 503})
"""The statuses after which a provider is asked again."""

_SECONDS = re.compile(r"[0-9]{1,9}")
_FIRST = 0.5


def wait_seconds(retry_after: str | None, *, attempt: int, now: datetime) -> float:
    """Return how many seconds to wait.

    Args:
        retry_after: the header as it was sent: seconds or an HTTP date. Without it, and for what is neither, the
            wait doubles with every attempt, from half a second.
        attempt: how often the provider was asked before, from 0.
        now: the time of day.
    """
    text = (retry_after or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    until = _date(text)
    return _FIRST * 2**attempt if until is None else max(0.0, (until - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
