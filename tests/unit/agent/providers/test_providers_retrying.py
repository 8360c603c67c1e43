"""How long a busy provider is left alone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.providers.retrying import wait_seconds

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
    assert expected == wait_seconds(header, attempt=attempt, now=NOW)


@given(st.text(), st.integers(0, 10))
def test_any_header_gives_a_wait(header, attempt):
    """No header breaks it, and no wait is negative."""
    assert wait_seconds(header, attempt=attempt, now=NOW) >= 0
