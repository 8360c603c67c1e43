"""What a term is, in stored messages and in queries."""

from pathlib import Path

import pytest
from case_files import rows
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.sessions.query import query_terms, terms
from beaver_toolkit.words import LONGEST

DATA = Path(__file__).with_name("data")


@pytest.mark.parametrize(
    ("text", "expected"),
    [*rows(DATA / "terms.jsonl", "text", "expected"), ('\0\ud800 *"-NEAR(', ["near"]), ("x" * 1000, ["x" * LONGEST])],
)
def test_terms_of_a_text(text, expected):
    """Words, signs, pairs of signs and symbols are terms; everything else only separates them."""
    assert expected == [*terms(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is the database?", ["database"]),
        ("who are you", ["who", "are", "you"]),
        ("数据库 库", ["数据", "据库", "库"]),
        ("one two one 3", ["one", "two", "3"]),
        ("aa bb cc dd", ["aa", "bb", "cc"]),
    ],
)
def test_terms_of_a_query(text, expected):
    """A query keeps stop-words only if it has no other words, asks for each term once, and limits their number."""
    assert expected == query_terms(text, 3)


@given(st.text())
def test_a_text_is_found_by_itself(text):
    """Each term of a query is also an indexed term of the same text, and no term holds a character of FTS5's syntax."""
    asked, indexed = {*query_terms(text, 1000)}, {*terms(text)}

    assert asked <= indexed
    assert not any(character in term for term in indexed for character in ' "\0*:^-+(){}')
