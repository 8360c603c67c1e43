"""Phrases and prefixes in the text of a search, and the memories that hold them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.patterns import Pattern, parsed
from beaver_memory.search.exact import holds
from beaver_memory.testing.store_cases.kit import as_stored, new


def phrase(text):
    return Pattern(text=text)


def prefix(text):
    return Pattern(text=text, is_prefix=True)


@pytest.mark.parametrize(
    ("text", "plain", "patterns"),
    [
        ("blue whale", "blue whale", ()),
        ('"blue whale"', "", (phrase("blue whale"),)),
        ('where is "blue whale" now', "where is now", (phrase("blue whale"),)),
        ("\u201cblue whale\u201d", "", (phrase("blue whale"),)),
        ("config* file", "file", (prefix("config"),)),
        ('"blue wha"*', "", (prefix("blue wha"),)),
        ('"blue wha*"', "", (prefix("blue wha"),)),
        ('"a b" "c" d* "a b"', "", (phrase("a b"), phrase("c"), prefix("d"))),
        ('say "blue whale', 'say "blue whale', ()),
        ('5" and 6', '5" and 6', ()),
        ('"" x', '"" x', ()),
        ('"  " "!?"', '"  " "!?"', ()),
        ("*", "*", ()),
        ("a * b ** !*", "a * b ** !*", ()),
        ("2*3 *x", "2*3 *x", ()),
        ('鲸* "蓝鲸"', "", (prefix("鲸"), phrase("蓝鲸"))),
        ("", "", ()),
    ],
)
def test_parsed(text, plain, patterns):
    """Parsing takes whole patterns with a word out of the text and leaves the rest as plain words."""
    assert (plain, patterns) == parsed(text)


@given(st.text() | st.text(alphabet='"* a\u201c鲸'))
def test_any_text_is_parsed(text):
    """Parsing gives patterns that each hold a word, and leaves a text without patterns unchanged."""
    plain, patterns = parsed(text)
    assert all(pattern.words for pattern in patterns)
    assert patterns or plain == text


MEMORY = as_stored(
    new(
        "The Blue Whale, café",
        at=0,
        narrative="state-of-the-art config_file 我喜欢蓝鲸。",
        facts=("one two", "three four"),
        tags=("sea",),
        keywords=("deep water",),
        related_people=("Zoë",),
        summary="unseen",
    ).memory,
    1,
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (phrase("blue whale"), True),
        (phrase("BLUE WHALE CAFE"), True),
        (phrase("whale blue"), False),
        (phrase("blue whales"), False),
        (phrase("lue whale"), False),
        (prefix("blue wha"), True),
        (prefix("whe"), False),
        (prefix("CAF"), True),
        (phrase("state of the art"), True),
        (phrase("config file"), True),
        (phrase("one two"), True),
        (phrase("two three"), False),
        (phrase("sea"), True),
        (phrase("deep water"), True),
        (phrase("zoe"), True),
        (phrase("蓝鲸"), True),
        (phrase("鲸蓝"), False),
        (phrase("喜欢 蓝鲸"), True),
        (phrase("unseen"), False),
    ],
    ids=str,
)
def test_held(pattern, expected):
    """A memory holds words in this order within one text, regardless of case and accents, and no other forms of them."""
    assert expected == holds(MEMORY, [pattern])


def test_all_patterns_are_held():
    """A memory that lacks one of the patterns does not hold them."""
    assert (True, False) == (holds(MEMORY, [phrase("sea"), prefix("wat")]), holds(MEMORY, [phrase("sea"), phrase("x")]))
