"""The estimate of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs.tokens import estimate_tokens

TEXTS = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("é" * 8, 5),
        ("привет", 4),
        ("漢字漢字", 4),
        ("\U0001f600" * 8, 11),
        ("\ud800" * 4, 4),
        ("abcd漢", 2),
    ],
)
def test_known_estimates(text, tokens):
    """The estimate is the stated one for each width of character, lone surrogates included."""
    assert estimate_tokens(text) == tokens


@given(TEXTS, TEXTS)
def test_it_is_monotone_and_subadditive(one, other):
    """A text costs at least what either part costs, and at most what they cost together."""
    whole = estimate_tokens(one + other)

    parts = estimate_tokens(one), estimate_tokens(other)

    assert max(parts) <= whole <= sum(parts)
