"""Signals: each is a number from 0 to 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.embedding.calibration import UNKNOWN, Scale
from beaver_memory.search.signals import BEST, nearness, recency, speaking, spread, together

KNOWN = Scale(apart=0.5, alike=0.9)
ALL = np.ones(3, bool)


def test_spread():
    """The smallest is 0 and the largest 1; where all are the same they are 1, and 0 where they are nothing."""
    assert [0.0, 0.25, 1.0] == spread(np.array([2.0, 3.0, 6.0])).tolist()
    assert [[1.0, 1.0], [0.0, 0.0], []] == [spread(np.array(each)).tolist() for each in ([2.0, 2.0], [0.0, 0.0], [])]


def test_recency():
    """Recency is 1 now, a half after one day, a quarter after three days, and 1 for the future."""
    day = 86_400.0
    assert [1.0, 0.5, 0.25, 1.0] == recency(np.array([0.0, -day, -3 * day, day]), 0.0).tolist()


def test_nearness_by_the_scale_of_the_model():
    """Nearness runs from the model's cosine for unrelated texts to the nearest one, however many others there are."""
    cosines = np.array([0.4, 0.6, 0.9])
    assert [0.0, 0.25, 1.0] == pytest.approx(nearness(cosines, ALL, KNOWN).tolist())
    more = np.concatenate([cosines, np.full(200, 0.45)])
    assert [0.0, 0.25, 1.0] == pytest.approx(nearness(more, np.ones(203, bool), KNOWN).tolist()[:3])


def test_nearness_where_all_are_far():
    """Nearness tells memories apart that have hardly anything in common with the query."""
    assert [0.5, 0.0, 1.0] == pytest.approx(nearness(np.array([0.2, 0.1, 0.3]), ALL, KNOWN).tolist())


def test_nearness_by_an_unknown_model():
    """With an unknown model nearness runs from the last of the nearest to the first, and is 1 where all are equal."""
    assert [0.0, 0.5, 1.0] == pytest.approx(nearness(np.array([0.1, 0.2, 0.3]), ALL, UNKNOWN).tolist())
    assert [1.0, 0.0, 1.0] == nearness(np.array([0.3, 0.0, 0.3]), np.array([1, 0, 1], bool), UNKNOWN).tolist()
    many = np.linspace(0, 1, 241)
    assert 0.5 == pytest.approx(many[nearness(many, np.ones(241, bool), UNKNOWN) > 0].min(), abs=0.01)


def test_nearness_of_what_has_no_vector():
    """A memory without a vector has nearness 0."""
    assert [0.0, 0.0, 1.0] == nearness(np.array([0.9, 0.8, 0.7]), np.array([0, 0, 1], bool), KNOWN).tolist()
    assert [0.0, 0.0, 0.0] == nearness(np.array([0.9, 0.8, 0.7]), ~ALL, KNOWN).tolist()


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), max_size=30))
def test_sessions(given_ones):
    """The session signal is the mean of the three best values of the session, and 0 without a session."""
    sessions = np.array([each for each, _ in given_ones], "u8")
    said = np.array([each for _, each in given_ones], "f8")

    def mean(session):
        best = sorted((value for own, value in given_ones if own == session), reverse=True)[:BEST]
        return sum(best) / BEST if session else 0.0

    assert [mean(session) for session, _ in given_ones] == pytest.approx(together(sessions, said).tolist(), abs=1e-9)


@given(st.lists(st.integers(0, 6), max_size=20), st.lists(st.integers(0, 6), max_size=70))
def test_speakers(speakers, names):
    """The signal is 1 for named speakers, and 0 for all where every speaker is named; 0 is no name."""
    named = [each in names and each != 0 for each in speakers]
    expected = [0.0] * len(speakers) if all(named) else [float(each) for each in named]
    assert expected == speaking(np.array(speakers, "u8"), np.array(names, "u8")).tolist()
