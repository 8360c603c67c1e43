"""Facts are flat, short, scrubbed, and without what names a person."""

import math
from enum import IntEnum, StrEnum
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.receipts.facts import (
    LONGEST,
    MOST_ITEMS,
    clean,
    clean_name,
    clean_text,
    pseudonym,
)
from beaver_hooks.receipts.private_texts import HORIZON, PrivateTexts
from beaver_hostspecs import Personal

PROMPT = "my password is hunter2 and my cat is Tom"


def identify(value):
    return f"h:{sum(map(ord, value)) % 1000:03}"


def cleaned(value):
    return clean({"fact": value}, private=PrivateTexts(), identify=identify)["fact"]


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
    ("x " * LONGEST, ("x " * LONGEST)[: LONGEST - 1]),
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

    assert [clean_name(name, private=PrivateTexts(), identify=identify) for name in names] == [
        "fine", "two_words", "a_b", "tab_here", "dots_and_dashes", "_", "_", "é", "new_line", "1",
    ]  # fmt: skip


def test_too_many_facts():
    """If there are too many facts, the first ones are kept."""
    facts = {f"f{number}": number for number in range(MOST_ITEMS + 5)}

    assert clean(facts, private=PrivateTexts(), identify=identify) == dict(list(facts.items())[:MOST_ITEMS])


def test_what_gives_something_away_is_replaced():
    """A fact with something private in it becomes its keyed hash and length, and others stay as they are."""
    private = PrivateTexts(PROMPT, ("session-77",), [PROMPT])
    texts = [PROMPT, f"saw '{PROMPT}'!", "for session-77.", "nothing of it"]

    assert [clean_text(text, private=private, identify=identify) for text in texts] == [
        *[pseudonym(text, identify) for text in texts[:3]], "nothing of it",
    ]  # fmt: skip


def test_a_huge_text():
    """Only the beginning of a huge text is kept or hashed, and a personal one still has its full length."""
    huge = "word " * HORIZON

    assert cleaned(huge) == ("word " * 100)[: LONGEST - 1]
    assert cleaned(Personal(value=huge)) == f"{identify(huge[:HORIZON])}/{len(huge)}"


def test_pseudonyms():
    """A pseudonym is a keyed hash and a length."""
    assert pseudonym("ada", lambda value: f"<{value[::-1]}>") == "<ada>/3"


def test_secrets_in_facts(canary):
    """Secrets are masked in values, in lists and in names, before anything is cut."""
    secret = canary.reveal()
    facts = {"plain": secret, "list": [f"a{secret}b"], f"k{secret}": 1, "cut": "x " * (LONGEST // 2 - 2) + secret}

    kept = clean(facts, private=PrivateTexts(), identify=identify)

    canary.assert_clean(str(kept))
    assert (kept["plain"], kept["list"]) == ("[secret]", ["a[secret]b"])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), ANYTHING, max_size=5), st.text(min_size=6))
def test_any_facts_come_out_flat_and_clean(facts, personal):
    """Any facts come out with safe names, flat values, and nothing personal."""
    private = PrivateTexts(personal, (), [personal])
    kept = clean({**facts, "leak": f"<{personal}>", personal: 1}, private=private, identify=identify)

    flat = [item for value in kept.values() for item in (value if isinstance(value, list) else [value])]
    assert all(item is None or isinstance(item, str | int | float) for item in flat)
    assert all(not isinstance(item, float) or math.isfinite(item) for item in flat)
    assert all(key and not set(key) & set(' ="\n') for key in kept)
    if (
        personal.strip()
        and personal.split() == [personal]
        and personal not in f"<{pseudonym(personal, identify)}>[secret]"
    ):
        assert personal not in kept["leak"]
