"""How a plugin says what it did."""

import inspect

import attrs
import pytest

from beaver_hostspecs import OutcomeKind, Personal, Report


def test_the_named_outcomes():
    """A write ends in one of eleven ways."""
    expected = [
        "stored", "duplicate", "updated", "superseded", "gated", "rejected", "deferred", "queued", "skipped",
        "unknown", "failed",
    ]  # fmt: skip

    assert expected == [kind.value for kind in OutcomeKind]


def test_an_outcome_is_its_name():
    """Kinds can be written as text and compare to it."""
    assert OutcomeKind.STORED == OutcomeKind("stored") == "stored"


def test_a_personal_fact_hides_its_value():
    """What could name a person does not show in a repr."""
    assert "Personal()" == repr(Personal(value="someone@example.org"))


@pytest.mark.parametrize("value", [None, 5, b"id"])
def test_a_personal_fact_is_text(value):
    """Other types are refused: a keyed hash is made of it."""
    with pytest.raises(TypeError):
        Personal(value=value)


def test_a_personal_fact_is_frozen():
    """It cannot be changed after it was reported."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Personal(value="a").value = "b"


def test_what_a_report_offers():
    """The protocol has these methods, each of which says what it does."""
    methods = {
        name: inspect.getdoc(method)
        for name, method in inspect.getmembers(Report, inspect.isfunction)
        if name[0] != "_"
    }

    assert {
        "candidates",
        "clipped",
        "decision",
        "degraded",
        "event",
        "outcome",
        "recovered",
        "notice",
        "remaining",
    } == set(methods)
    assert all(methods.values())
