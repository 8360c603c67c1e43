"""Formulas: every one ranks any candidates, with numbers, the same each time; shares add up to the score."""

from datetime import UTC, datetime

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaver_hooks_local.filters import Filters
from beaver_hooks_local.query import Query
from beaver_hooks_local.ranking.candidates import Candidates
from beaver_hooks_local.ranking.choosing import Choice, best_of, hits
from beaver_hooks_local.ranking.formulas import FORMULAS, Ranked, Weights
from beaver_hooks_local.records import Memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FILTERS = Filters(now=NOW)


@st.composite
def found(draw):
    """Return candidates of any kind, also all alike."""
    size = draw(st.integers(0, 30))

    def column(values, kind):
        if draw(st.booleans()):
            return np.full(size, draw(values), kind)
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), kind)

    places = st.integers(-1, size - 1) if size else st.just(-1)
    shares = st.floats(0, 1)
    return Candidates(
        columns={
            "ids": np.arange(1, size + 1),
            "passages": np.zeros(size, "u2"),
            "sessions": column(st.integers(0, 3), "u8"),
            "speakers": column(st.integers(0, 3), "u8"),
            "created": column(st.floats(0, 2e9), "f8"),
            "updated": column(st.floats(0, 4e9), "f8"),
            "mentions": column(st.integers(1, 2**32 - 1), "u4"),
            "importance": column(shares, "f4"),
            "confidence": column(shares, "f4"),
            "pinned": column(st.integers(0, 1), "u1"),
        },
        lexical=column(st.floats(0, 100), "f8"),
        cosine=draw(st.none() | st.just(column(st.floats(-1, 1), "f8"))),
        embedded=column(st.booleans(), bool),
        earlier=column(places, "i8"),
        later=column(places, "i8"),
    )


@settings(max_examples=200, deadline=None)
@given(found(), st.sampled_from(sorted(FORMULAS)), st.lists(st.integers(0, 3), max_size=3))
def test_any_candidates(candidates, name, names):
    """Scores are numbers, the same each time, and the sums of their shares; at most a little above 1."""
    given_names = np.array(names, "u8")
    ranked = FORMULAS[name](candidates, given_names, NOW.timestamp(), Weights())
    again = FORMULAS[name](candidates, given_names, NOW.timestamp(), Weights())
    assert ranked.scores.tolist() == again.scores.tolist()
    assert candidates.size == len(ranked.scores)
    assert np.isfinite(ranked.scores).all()
    assert ranked.scores.tolist() == pytest.approx(np.sum(list(ranked.shares.values()), axis=0).tolist())
    assert (ranked.scores <= 1.2).all()


def memory(id_, title, tokens=1):
    """Return a memory."""
    return Memory(title=title, id=id_, hash=str(id_), updated_at=NOW, created_at=NOW, token_count=tokens)


def chosen(titles, scores, **asked):
    """Return the titles of what is shown, and what was read."""
    read = []

    def reading(ids):
        read.append(list(ids))
        return [memory(id_, titles[id_], tokens=10) for id_ in ids if id_ in titles]

    choices = [Choice(id=id_, score=score, place=place) for place, (id_, score) in enumerate(scores)]
    shown = hits(
        choices, reading, {"lexical": np.array([score for _, score in scores])}, Query(filters=FILTERS, **asked)
    )
    return [hit.memory.id for hit in shown], read


def test_near_duplicates_are_shown_once():
    """Of memories that say the same the best is shown, and the next one takes the other's place."""
    titles = {
        1: "tea at five in the garden of Ann",
        2: "tea at five in the garden of Ann!",
        3: "bike",
        4: "boat",
        5: "rain",
    }
    scores = [(1, 0.9), (2, 0.895), (3, 0.5), (4, 0.4), (5, 0.3)]
    assert ([1, 3, 4], [[1, 2, 3, 4]]) == chosen(titles, scores, limit=3)
    # It is read on only if some of the first ones are not shown.
    assert ([1, 3], [[1, 2, 3]]) == chosen(titles, scores, limit=2)
    assert ([1, 3, 4, 5], [[1, 2, 3, 4, 5]]) == chosen(titles, scores, limit=4)


def test_what_cannot_be_read_is_left_out():
    """A memory that was forgotten meanwhile makes place for the next one."""
    assert ([2, 4], [[1, 2, 3], [4]]) == chosen(
        {2: "tea", 4: "bike"}, [(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.6)], limit=2
    )


def test_what_hits_may_cost():
    """Hits end with the one that would cost too much; the first one is always there."""
    titles = {1: "tea", 2: "bike", 3: "boat"}
    scores = [(1, 0.9), (2, 0.8), (3, 0.7)]
    assert [[1], [1, 2], [1, 2, 3]] == [chosen(titles, scores, limit=3, max_tokens=most)[0] for most in (5, 29, 30)]


def test_the_best_passage_of_each():
    """A memory comes once, by its best passage; of equal ones the newest is first; a minimum is kept."""
    size = 5
    candidates = Candidates(
        columns={"ids": np.array([1, 1, 2, 3, 4]), "passages": np.array([0, 1, 0, 0, 0], "u2")},
        lexical=np.zeros(size), cosine=None, embedded=np.zeros(size, bool), earlier=np.full(size, -1), later=np.full(size, -1),
    )  # fmt: skip
    ranked = Ranked(scores=np.array([0.2, 0.6, 0.5, 0.5, 0.05]), shares={})
    best = best_of(candidates, ranked, Query(filters=FILTERS, minimum_score=0.1))
    assert [(1, 1, 0.6), (3, 0, 0.5), (2, 0, 0.5)] == [(each.id, each.passage, each.score) for each in best]


def test_explanations_add_up():
    """The shares of a hit are those of its place among the candidates."""
    choices = [Choice(id=1, score=0.7, place=1)]
    shares = {"lexical": np.array([0.0, 0.5]), "recency": np.array([0.0, 0.2])}
    (hit,) = hits(choices, lambda _: [memory(1, "tea")], shares, Query(filters=FILTERS, explain=True))
    assert ({"lexical": 0.5, "recency": 0.2}, 0.7) == (hit.shares, hit.score)
    assert {} == attrs.evolve(hits(choices, lambda _: [memory(1, "tea")], shares, Query(filters=FILTERS))[0]).shares
