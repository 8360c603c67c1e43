"""Traits: what a passage can answer whatever its words are, in each of three languages, and what a query asks for."""

from pathlib import Path

import pytest
from case_files import rows

from beaver_memory.search.terms import Analyser, name_hash
from beaver_memory.search.traits import ASKS, FIRST, NUMBER, RULE, SIZE, TIME, TraitReader

DATA = Path(__file__).with_name("data")
READER = TraitReader()
FLAGS = {"asks": ASKS, "first": FIRST, "time": TIME, "number": NUMBER, "rule": RULE}


def traits(text, passages=1):
    """Return the words that count, the size of the memory, and the names of the flags."""
    found = READER.traits_of(text, text.split(), passages)
    return found & 31, found >> SIZE & 15, {name for name, flag in FLAGS.items() if found & flag}


@pytest.mark.parametrize(
    ("text", "words", "flags"), [*rows(DATA / "traits.jsonl", "text", "words", "flags"), ("word " * 40, 31, [])]
)
def test_the_traits_of_a_text(text, words, flags):
    """Words of statements are counted up to 31; a time, a number, a rule and the first person are seen."""
    assert (words, 0, {*flags}) == traits(text)


def test_the_size_of_a_memory():
    """The size is the binary logarithm of the number of passages."""
    assert [0, 0, 1, 1, 2, 10] == [traits("tea", count)[1] for count in (0, 1, 2, 3, 4, 1_200)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did Ann move?", (False, True, False)),
        ("How many dogs do I have?", (True, False, True)),
        ("Wie lange wohne ich schon in Graz?", (True, True, False)),
        ("Wie viele Katzen hat Ben?", (False, False, True)),
        ("我什么时候买了车\uff1f", (True, True, False)),
        ("安娜有几只猫\uff1f", (False, False, True)),
        ("Where does Ann live?", (False, False, False)),
    ],
)
def test_what_a_query_asks_for(query, expected):
    """The first person names the asker; questions for a time and for a number differ from other questions."""
    intent = Analyser().intent(query, "Mona")
    assert expected == (name_hash("Mona") in intent.names.tolist(), intent.when, intent.how_many)
