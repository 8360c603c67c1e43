"""Selection of hits: the best memories as sorting finds them, and the same words however a text is read."""

import re
from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.search.select import best_of, words
from beaver_memory.views import View

FILTERS = Filters(view=View(now=datetime(2026, 3, 1, tzinfo=UTC)))


@given(
    st.tuples(st.integers(0, 300), st.integers(1, 60)),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.4, 0.9]),
    st.integers(2, 40),
    st.randoms(use_true_random=False),
)
def test_the_best_memories_are_those_that_sorting_finds(size, limit, minimum, levels, random):
    """Each memory is there once, by its best passage; of equal ones the newest, of its passages the first."""
    units = sorted({(random.randint(1, size[1]), random.randint(0, 99)) for _ in range(size[0])})
    scores = [random.randrange(levels) / levels for _ in units]
    ids, numbers = (np.array([unit[which] for unit in units], "i8") for which in (0, 1))
    none = np.empty(0)
    found = Candidates(
        columns={"ids": ids, "passages": numbers},
        lexical=np.zeros(len(units)),
        cosine=None,
        embedded=none,
        earlier=none,
        later=none,
    )
    query = Query(filters=FILTERS, limit=limit, minimum_score=minimum)
    expected = {}
    for score, id_, passage in sorted((-score, -unit[0], unit[1]) for score, unit in zip(scores, units, strict=True)):
        if -score >= minimum:
            expected.setdefault(-id_, (-id_, -score, passage, units.index((-id_, passage))))
    chosen = best_of(found, Ranked(scores=np.array(scores, "f8"), shares={}), query)
    assert list(expected.values()) == [(each.id, each.score, each.passage, each.place) for each in chosen]


@given(st.text(st.characters(max_codepoint=160), max_size=40))
def test_words(text):
    """The words of a text are the same, in whatever way they are found."""
    assert frozenset(re.findall(r"\w+", text.casefold())) == words(text)
