"""The best of many values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.search.top_k import EACH, LEAST, TopK, best, few_of_each


@given(st.lists(st.integers(-3, 3), max_size=900), st.integers(1, 40))
def test_the_best_are_those_that_sorting_finds(values, limit):
    """The largest come first, of equal ones the last, however many there are."""
    expected = sorted(range(len(values)), key=lambda place: (-values[place], -place))[:limit]
    assert expected == best(np.array(values, "f8"), limit).tolist()


@given(st.integers(0, 99), st.integers(1, 9_000), st.integers(1, 200))
def test_the_best_of_very_many(seed, count, limit):
    """The best of many values are those of a full sort."""
    values = np.random.default_rng(seed).normal(size=count)
    expected = np.argsort(-values)[:limit]
    assert expected.tolist() == best(values, limit).tolist()


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1e-9, 2.0, 3.0]), max_size=900), st.integers(1, 40))
def test_what_is_too_small_is_not_among_the_best(values, limit):
    """`best` with a least value leaves out smaller values, even when fewer than the limit remain."""
    expected = sorted((place for place, each in enumerate(values) if each > 0), key=lambda at: (-values[at], -at))
    assert expected[:limit] == best(np.array(values, "f8"), limit, LEAST).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=200), st.integers(1, 12))
def test_of_each_memory_there_are_few(passages, limit):
    """Each memory keeps only its best passages, and passages of other memories take the places of the rest."""
    ids, values = (np.array([each[which] for each in sorted(passages)], "f8") for which in (0, 1))
    expected, had = [], {}
    for place in sorted(range(len(ids)), key=lambda place: (-values[place], -place)):
        had[ids[place]] = had.get(ids[place], 0) + 1
        expected += [place] * (had[ids[place]] <= EACH)

    def find(count):
        units = best(values, count)
        return TopK(units=units, scores=values[units])

    found = few_of_each(find, ids, limit)
    assert expected[:limit] == found.units.tolist()
    assert values[expected[:limit]].tolist() == found.scores.tolist()
