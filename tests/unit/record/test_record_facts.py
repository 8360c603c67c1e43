"""Facts are flat, short, scrubbed, and without what names a person."""

import math
from enum import IntEnum, StrEnum
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.record.facts import (
    LONGEST,
    MOST_ITEMS,
    SHORTEST_EXCERPT,
    clean,
    clean_name,
    clean_text,
    personal_values,
    pseudonym,
)
from beaver_hostspecs import Actors, Personal
from beaver_hostspecs.testing import make_turn

PROMPT = "my password is hunter2 and my cat is Tom"


def identify(value):
    return f"h:{sum(map(ord, value)) % 1000:03}"


def cleaned(value, personal=()):
    return clean({"fact": value}, personal=personal, identify=identify)["fact"]


class Colour(StrEnum):
    RED = "red"


class Loud(str):
    """Prints as something else."""

    __slots__ = ()

    def __str__(self):
        return PROMPT


class Level(IntEnum):
    LOW = 1

    def __str__(self):
        return PROMPT


class Precise(float):
    """Prints as something else."""

    def __repr__(self):
        return PROMPT


VALUES = [
    (None, None),
    (True, True),
    (3, 3),
    (-(2**63), -(2**63)),
    (2**63, "int"),
    (10**6000, "int"),
    (HTTPStatus.OK, 200),
    (Level.LOW, 1),
    (1.5, 1.5),
    (Precise(2.5), 2.5),
    (math.nan, "nan"),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    ("", ""),
    (" two \n lines\t", "two lines"),
    ("x" * (LONGEST + 1), "x" * LONGEST),
    (Colour.RED, "red"),
    (Loud("quiet"), "quiet"),
    (Personal(value="ada"), "h:294/3"),
    (b"bytes", "bytes"),
    ({"nested": 1}, "dict"),
    (object(), "object"),
    (ValueError(PROMPT), "ValueError"),
    ([1, "a", None, [2], Personal(value="ada"), math.nan], [1, "a", None, "list", "h:294/3", "nan"]),
    ((1, 2), [1, 2]),
    (frozenset({7}), [7]),
    (list(range(MOST_ITEMS + 1)), list(range(MOST_ITEMS))),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=lambda value: type(value).__name__)
def test_what_a_fact_becomes(value, expected):
    """A fact is kept as it is or becomes something harmless, of a plain type."""
    kept = cleaned(value)

    assert (kept, type(kept)) == (expected, type(expected))


def test_names_of_facts():
    """A name fits any log format and any query."""
    names = ["fine", "two words", "a=b", "tab\there", "dots.and-dashes", "\ud800", "", "é", "new\nline", "1"]

    assert [clean_name(name, personal=(), identify=identify) for name in names] == [
        "fine", "two_words", "a_b", "tab_here", "dots_and_dashes", "_", "_", "é", "new_line", "1",
    ]  # fmt: skip


def test_too_many_facts():
    """Of too many facts the first ones are kept."""
    facts = {f"f{number}": number for number in range(MOST_ITEMS + 5)}

    assert clean(facts, personal=(), identify=identify) == dict(list(facts.items())[:MOST_ITEMS])


def test_what_is_personal():
    """The prompt and every id of a person are, the longest first, and nothing that is not there."""
    turn = make_turn(
        prompt=PROMPT, session="session-77", conversation="talk", user="ada",
        actors=Actors(speaker="ada@example.org", speaker_kind="human", agent="beaver"),
    )  # fmt: skip

    assert personal_values(turn) == (PROMPT, "ada@example.org", "session-77", "talk", "ada")


def test_what_is_personal_has_several_shapes(canary):
    """A prompt that holds a secret is known as it is once the secret is masked, and on one line."""
    turn = make_turn(prompt=f"use {canary.reveal()}\nplease", session="s", user=canary.reveal())

    assert personal_values(turn)[-3:] == ("use [secret]\nplease", "use [secret] please", "s")
    assert len(personal_values(turn)) == 5


HASH = f"{identify(PROMPT)}/{len(PROMPT)}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROMPT, HASH),
        (f"saw '{PROMPT}'!", f"saw '{HASH}'!"),
        (PROMPT[:SHORTEST_EXCERPT], HASH),
        (PROMPT[3:30], HASH),
        (PROMPT[: SHORTEST_EXCERPT - 1], PROMPT[: SHORTEST_EXCERPT - 1]),
        ("ada", "h:294/3"),
        ("adamant", "adamant"),
        ("for session-77.", f"for {identify('session-77')}/10."),
        ("nothing", "nothing"),
    ],
)
def test_what_is_personal_is_replaced(text, expected):
    """Prompts, long excerpts of them, and ids become keyed hashes; short ids only where they stand alone."""
    assert clean_text(text, personal=(PROMPT, "session-77", "ada"), identify=identify) == expected


def test_pseudonyms():
    """A pseudonym is a keyed hash and a length."""
    assert pseudonym("ada", lambda value: f"<{value[::-1]}>") == "<ada>/3"


def test_secrets_in_facts(canary):
    """Secrets are masked in values, in lists and in names, before anything is cut."""
    secret = canary.reveal()
    facts = {"plain": secret, "list": [f"a{secret}b"], f"k{secret}": 1, "cut": "x" * (LONGEST - 4) + secret}

    kept = clean(facts, personal=(), identify=identify)

    canary.assert_clean(str(kept))
    assert (kept["plain"], kept["list"]) == ("[secret]", ["a[secret]b"])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), ANYTHING, max_size=5), st.text(min_size=6))
def test_any_facts_come_out_flat_and_clean(facts, personal):
    """Whatever a plugin says, names fit anywhere, values are flat, and nothing personal is among them."""
    kept = clean({**facts, "leak": f"<{personal}>", personal: 1}, personal=(personal,), identify=identify)

    flat = [item for value in kept.values() for item in (value if isinstance(value, list) else [value])]
    assert all(item is None or isinstance(item, str | int | float) for item in flat)
    assert all(not isinstance(item, float) or math.isfinite(item) for item in flat)
    assert all(key and not set(key) & set(' ="\n') for key in kept)
    if personal.strip() and personal.split() == [personal] and personal not in f"<{pseudonym(personal, identify)}>":
        assert personal not in kept["leak"]
