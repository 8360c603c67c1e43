"""Facts are numbers, codes and ids; any other text becomes its keyed hash and its length."""

import math
import re
from enum import IntEnum, StrEnum
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.receipts.facts import HORIZON, MOST_ITEMS, Cleaner, private_words
from beaver_hostspecs import Actors, Personal
from beaver_hostspecs.testing import make_turn

PROMPT = "my password is hunter2 and my cat is Tom"


def identify(value):
    return f"h:{len(value)}"


CLEANER = Cleaner(identify)


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
    (-math.inf, "-inf"),
    ("", ""),
    ("two words", "h:9/9"),
    ("läuft", "h:5/5"),
    ("x" * 64, "x" * 64),
    ("x" * 65, "h:65/65"),
    (Colour.RED, "red"),
    (Loud("quiet"), "quiet"),
    (Personal(value="ada"), "h:3/3"),
    (b"bytes", "bytes"),
    ({"nested": 1}, "dict"),
    (object(), "object"),
    (ValueError(PROMPT), "ValueError"),
    (type(PROMPT, (), {})(), "h:40/40"),
    ([1, "a", None, [2], Personal(value="ada"), math.nan], [1, "a", None, "list", "h:3/3", "nan"]),
    ((1, 2), [1, 2]),
    (frozenset({7}), [7]),
    (list(range(MOST_ITEMS + 1)), list(range(MOST_ITEMS))),
    ("word " * HORIZON, f"h:{HORIZON}/{5 * HORIZON}"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=lambda value: type(value).__name__)
def test_what_a_fact_becomes(value, expected):
    """A fact is kept as it is or becomes something harmless, of a plain type."""
    kept = CLEANER.facts({"fact": value})["fact"]

    assert (kept, type(kept)) == (expected, type(expected))


CODES = [
    "timeout", "disk_failed", "2026-01-02T12:00:00+00:00", "beaver_memory.store:120", "h:0123456789abcdef01234567/12",
    "/srv/agent/.beaver/plugins/local/memory.db", "0f8fad5b-d9cb-469f-a165-70867728950e", "p12", "ConnectionError",
]  # fmt: skip


def test_codes_and_ids():
    """Codes, ids, times, places, paths, types and keyed hashes stay as they are."""
    assert CODES == [CLEANER.code(each) for each in CODES]


def test_names():
    """A name fits any log format and any query."""
    names = ["fine", "dots.and-dashes", "two words", "new\nline", "\ud800", ""]

    assert [CLEANER.name(name) for name in names] == [
        "fine", "dots_and_dashes", "h_9_9", "h_8_8", "h_1_1", "_",
    ]  # fmt: skip


def test_too_many_facts():
    """If there are too many facts, the first ones are kept."""
    facts = {f"f{number}": number for number in range(MOST_ITEMS + 5)}

    assert CLEANER.facts(facts) == dict(list(facts.items())[:MOST_ITEMS])


TURN = make_turn(
    prompt="Hunter2 ok?",
    session="session-77",
    conversation="u1",
    user="zoe@example.org",
    actors=Actors(speaker="telegram:778899", subject="kim"),
    id="their-own-id",
)


@pytest.mark.parametrize(
    ("code", "is_kept"),
    [
        ("hunter2-ok", False), ("pw:HUNTER2OK", False), ("hunter", True), ("session-77", False), ("x:session_77/3", False),
        ("u1", False), ("u1-3", True), ("mailto:zoe.example.org", False), ("telegram_778899", False), ("kim", False),
        ("note:Kim", False), ("kimono", True), ("their-own-id", False), ("session", True),
    ],
)  # fmt: skip
def test_ids_of_persons(code, is_kept):
    """A code that contains the prompt or an id of the turn is replaced; a short id counts as a word, or as a whole."""
    cleaner = Cleaner(identify, private_words(TURN, recorded="h:1"))

    assert (cleaner.code(code) == code) == is_kept


@pytest.mark.shows("000-120")
def test_secrets_in_codes(canary):
    """A code that contains a secret is replaced, as a value, in a list and as a name."""
    secret = canary.reveal()
    kept = CLEANER.facts({"plain": secret, "list": [f"a{secret}b"], f"k{secret}": 1})

    canary.assert_clean(str(kept))
    assert len(kept) == 3


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), ANYTHING, max_size=5))
def test_any_facts_come_out_flat_and_clean(facts):
    """Any facts come out with names and texts that are codes, and with numbers that JSON has."""
    kept = CLEANER.facts(facts)

    flat = [item for value in kept.values() for item in (value if isinstance(value, list) else [value])]
    texts = [item for item in flat if isinstance(item, str)]
    assert all(item is None or isinstance(item, str | int | float) for item in flat)
    assert all(not isinstance(item, float) or math.isfinite(item) for item in flat)
    assert all(re.fullmatch(r"[\w.:/+-]{0,64}", each, re.ASCII) for each in texts)
    assert all(re.fullmatch(r"\w+", each, re.ASCII) for each in kept)
