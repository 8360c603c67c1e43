"""Expressions of a vocabulary find what they would find if they were tried on every text."""

import re
from itertools import chain

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.reconcile.vocabulary.expressions import Clues, Expression, digest_of
from beaver_memory.reconcile.vocabulary.reader import LANGUAGES, vocabulary

LIVES = "(?:I live|I'm based) in (?P<v>.+)"


def expressions():
    """Return the expressions with clues of all languages."""
    found = []
    for known in map(vocabulary, LANGUAGES):
        fields = [getattr(known, each.name) for each in attrs.fields(type(known)) if each.name != "families"]
        parts = chain.from_iterable(each if isinstance(each, tuple) else (each,) for each in fields)
        found += [each for each in parts if isinstance(each, Expression)]
        found += chain.from_iterable(family.patterns for family in known.families)
    return [each for each in found if each.clues]


EXPRESSIONS = expressions()


@given(st.data())
def test_a_match_of_any_expression(data):
    """Every text that holds a match of an expression is searched, whatever is beside the match."""
    expression = data.draw(st.sampled_from(EXPRESSIONS))
    text = data.draw(st.from_regex(re.compile(expression.pattern, re.IGNORECASE)))

    found = re.search(expression.pattern, text, re.IGNORECASE)
    assert (found and found.span()) == ((again := expression.search(text)) and again.span())


@pytest.mark.parametrize("clue", ["at", "dog", "horse"])
def test_a_clue_at_any_place(clue):
    """A text is searched wherever in it a clue stands, whatever the length of the clue."""
    expression = Expression(clue, Clues({digest_of(clue): [clue]}))
    assert [0, 3, 3, None] == [
        (found := expression.search(text)) and found.start()
        for text in (f"{clue} is", f"is {clue} is", f"is {clue}", "is")
    ]


@pytest.mark.parametrize("text", ["I L\u0131ve in Rome", "I L\u0130VE \u0130N Rome", "I'm ba\u017fed in Rome"])
def test_letters_of_another_script(text):
    """A letter counts as the one that it stands for without regard to case, as a search counts it."""
    lives = Expression(LIVES, Clues({digest_of(LIVES): ["live based", "in"]}))
    assert "Rome" == lives.search(text)["v"]


def test_an_expression_whose_clues_are_not_known():
    """An expression that has no clues is tried on every text."""
    lives = Expression(LIVES, Clues({}))
    assert ["Rome", "X in X", []] == [
        lives.search("I live in Rome")["v"], lives.sub("X in X", "I live in Rome"), list(lives.finditer("We do."))
    ]  # fmt: skip


def test_a_text_without_clues():
    """A text without a clue of each set is not searched, and stays as it is."""
    lives = Expression(LIVES, Clues({digest_of(LIVES): ["live based", "nothing"]}))
    text = "I live in Rome"
    assert [None, text, []] == [lives.search(text), lives.sub("X", text), list(lives.finditer(text))]
