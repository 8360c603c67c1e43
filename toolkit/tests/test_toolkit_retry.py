"""Whether and when a busy server is asked again."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit.retry import Retry

RETRY = Retry(statuses={429, 503}, most=10, first=0.5)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "attempt", "expected"),
    [
        ("0", 0, 0.0),
        (" 12 ", 3, 12.0),
        ("Fri, 02 Jan 2026 03:04:15 GMT", 0, 10.0),
        ("Fri, 02 Jan 2026 03:04:15 -0000", 0, 10.0),
        ("Fri, 02 Jan 2026 03:04:00 GMT", 0, 0.0),
        (None, 0, 0.5),
        (None, 2, 2.0),
        ("soon", 1, 1.0),
        ("-5", 1, 1.0),
        ("1.5", 0, 0.5),
        ("9" * 10, 0, 0.5),
        ("Fri, 99 Jan 2026 03:04:15 GMT", 0, 0.5),
    ],
)
def test_waits(header, attempt, expected):
    """Seconds and dates are honoured; everything else doubles from half a second."""
    assert expected == RETRY.wait(429, header, attempt=attempt, now=NOW)


@given(st.text(), st.integers(0, 9))
def test_any_header_gives_a_wait(header, attempt):
    """No header breaks it, and no wait is negative."""
    assert RETRY.wait(429, header, attempt=attempt, now=NOW) >= 0


@pytest.mark.parametrize(
    ("status", "header", "attempt", "expected"),
    [(503, "30", 1, 30.0), (503, "31", 0, None), (503, "0", 2, None), (404, "0", 0, None)],
)
def test_never(status, header, attempt, expected):
    """A refusal that will not pass, too long a wait, and an attempt too many are not followed by another one."""
    retry = Retry(statuses={503}, most=2, first=0.5, longest=30.0)

    assert expected == retry.wait(status, header, attempt=attempt, now=NOW)
