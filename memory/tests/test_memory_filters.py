"""Filters refuse values that would silently match other memories than they say."""

from datetime import UTC, datetime

import pytest

from beaver_memory.testing.store_cases.kit import looking


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"types": "decision"}, TypeError("it must be a list of texts, not one text")),
        ({"owners": ["ann"]}, TypeError("owners must be Owner records")),
        ({"after": datetime(2026, 1, 1)}, ValueError("after must be a datetime with a time zone")),  # noqa: DTZ001 - refused
        ({"stores": ["secret"]}, ValueError("'secret' is not a valid Store")),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_refusals(fields, expected):
    """One text, an owner that is none, a time without a zone and an unknown store raise an error that says so."""
    with pytest.raises(type(expected)) as caught:
        looking(**{"now": datetime(2026, 1, 1, tzinfo=UTC)} | fields)

    assert str(expected) == str(caught.value)
