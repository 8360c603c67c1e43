"""The caches of the recall gate are bounded, and return no outdated entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks_local.recall.recall_cache import Answers, RecentItems


def test_lately():
    """`RecentItems` keeps the keys that were used last."""
    kept = RecentItems(2)
    kept.put("a", 1)
    kept.put("b", 2)
    kept.get("a")
    kept.put("c", 3)

    assert [1, None, 3] == [kept.get(each) for each in "abc"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers())))
def test_lately_is_bounded(puts):
    """`RecentItems` keeps at most its limit of keys, and always the key that was put last."""
    kept = RecentItems(3)
    for key, value in puts:
        kept.put(key, value)

    assert sum(kept.get(each) is not None for each in "abcdef") <= 3
    assert not puts or kept.get(puts[-1][0]) == puts[-1][1]


@pytest.mark.shows("003-100")
def test_answers_last():
    """An answer lasts for the cache's seconds, or for its own if they are fewer."""
    answers = Answers(120.0)
    answers.put("a", "one", version=(1,), now=0.0)
    answers.put("b", "two", version=(1,), now=0.0, lasts=5.0)
    answers.put("c", "three", version=(1,), now=0.0, lasts=500.0)

    assert ["one", None, "three"] == [answers.get(each, version=(1,), now=119.9) for each in "abc"]
    assert [None, None, None] == [answers.get(each, version=(1,), now=120.0) for each in "abc"]


def test_answers_end_with_a_write():
    """An answer from before a write is not returned."""
    answers = Answers(120.0)
    answers.put("a", "one", version=(1, 4), now=0.0)

    assert ("one", None) == tuple(answers.get("a", version=each, now=1.0) for each in ((1, 4), (1, 5)))
