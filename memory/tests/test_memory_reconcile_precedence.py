"""Memories that a newer one beside them outdates in a turn, although both are stored and hold."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.reconcile.precedence import CLEARLY, outdated
from beaver_memory.records import Memory, Owner

DATA = Path(__file__).with_name("data") / "reconcile"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def memories(*texts, apart=timedelta(days=1), **fields):
    """Return memories that were said one after another, with ids from 1 on."""
    return [
        Memory(
            id=number, hash="", title=text, created_at=MONDAY + number * apart, updated_at=MONDAY,
            **{name: values[number - 1] for name, values in fields.items()},
        )
        for number, text in enumerate(texts, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(("question", "older", "newer"), rows(DATA / "outdated.jsonl", "question", "older", "newer"))
def test_a_newer_memory_outdates_an_older_one(question, older, newer):
    """The older of two memories about one thing is left out, in whatever order they were found."""
    both = memories(older, newer)
    assert [{1}, {1}, set()] == [outdated(question, each) for each in (both, both[::-1], both[:1])]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        *rows(DATA / "both_count.jsonl", "question", "older", "newer"),
        ("Where?", "I live in " + "a very long house " * 20, "I live in Porto now."),
    ],
)
def test_memories_that_both_count(question, older, newer):
    """A difference that the question names, other subjects, several values, plans and additions outdate nothing."""
    assert set() == outdated(question, memories(older, newer or "?"))


def test_a_newer_memory_of_another_speaker():
    """The words of another speaker outdate nothing."""
    said = "I live in Lisbon.", "I live in Porto."
    assert [set(), {1}] == [outdated("?", memories(*said, speaker=each)) for each in (("Ann", "Bob"), ("Ann", "Ann"))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"owner": (Owner(user="ann"), Owner())}, set()),
        ({"owner": (Owner(user="ann"), Owner(user="ann"))}, {1}),
        ({"project": ("shop", "blog"), "scope": ("project", "project")}, set()),
        ({"project": ("", "blog"), "scope": ("global", "project")}, set()),
        ({"project": ("shop", "blog"), "scope": ("global", "global")}, {1}),
        ({"project": ("shop", "shop"), "scope": ("global", "project")}, {1}),
    ],
)
def test_a_newer_memory_of_another_place(fields, expected):
    """A memory of another owner, for example a shared one, outdates nothing, nor does one that holds in one project."""
    assert expected == outdated("?", memories("I live in Lisbon.", "I live in Porto.", **fields))


def test_memories_of_one_moment():
    """Of two memories from about the same moment none is newer."""
    said = "I live in Lisbon.", "I live in Porto."
    assert [set(), {1}] == [outdated("?", memories(*said, apart=each)) for each in (CLEARLY / 2, CLEARLY)]


@given(st.text(max_size=40), st.lists(st.text(max_size=40).map(lambda each: f"x {each}"), max_size=4))
def test_any_texts(question, texts):
    """Whatever the texts are, the newest one of them is never outdated."""
    found = memories(*texts)
    assert outdated(question, found) <= {each.id for each in found[:-1]}
