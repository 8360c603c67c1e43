"""Traits: what a passage can answer whatever its words are, in each of three languages, and what a query asks for."""

import pytest

from beaver_memory.search.terms import Analyser, name_hash
from beaver_memory.search.traits import ASKS, FIRST, NUMBER, RULE, SIZE, TIME, TraitReader

READER = TraitReader()
FLAGS = {"asks": ASKS, "first": FIRST, "time": TIME, "number": NUMBER, "rule": RULE}


def traits(text, passages=1):
    """Return the words that count, the size of the memory, and the names of the flags."""
    found = READER.traits_of(text, text.split(), passages)
    return found & 31, found >> SIZE & 15, {name for name, flag in FLAGS.items() if found & flag}


@pytest.mark.parametrize(
    ("text", "words", "flags"),
    [
        ("", 0, set()),
        ("Wow, great!", 2, set()),
        ("I went hiking yesterday.", 4, {"first", "time"}),
        ("Did you like it?", 0, {"asks"}),
        ('Nice. "And what about you?" she asked', 3, set()),
        ("She has two dogs. How old are they?", 4, {"asks", "number"}),
        ("Born in 1998, they moved", 5, {"number", "time"}),
        ("[1:56 pm on 8 May, 2023] Ann: Thanks", 2, set()),
        ("Always use metric units.", 4, {"rule"}),
        ("You know me: never call before noon", 7, {"first", "rule"}),
        ("it is always raining", 4, set()),
        ("Ich habe gestern drei Bücher gekauft.", 6, {"first", "time", "number"}),
        ("Immer mit Quellen antworten!", 4, {"rule"}),
        ("Schreib mir bitte immer kurz.", 5, {"first", "rule"}),
        ("Gut. Nennen Sie nie den Preis!", 6, {"rule"}),
        ("Please never call before noon.", 5, {"rule"}),
        ("Das Wetter ist immer schlecht.", 5, set()),
        ("Ob sie immer kommt?", 0, {"asks"}),
        ("It cost eighty or achtzig.", 5, {"number"}),
        ("Wann kommst du?", 0, {"asks"}),
        ("我昨天买了三本书。", 5, {"first", "time", "number"}),
        ("好的。以后都用中文。", 5, {"rule"}),
        ("价格一律含税。", 4, {"rule"}),
        ("请给我总是写短一点。", 5, {"first", "rule"}),
        ("给我的回答千万别太长。", 6, {"first", "rule"}),
        ("他总是迟到，我一定要去。", 6, {"first"}),
        ("你喜欢吃什么\uff1f", 1, {"asks"}),
        ("word " * 40, 31, set()),
    ],
)  # fmt: skip
def test_the_traits_of_a_text(text, words, flags):
    """Words of statements are counted up to 31; a time, a number, a rule and the first person are seen."""
    assert (words, 0, flags) == traits(text)


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
