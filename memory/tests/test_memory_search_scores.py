"""Scores: what one means by itself, and the share of each signal in it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_memory.embedding.calibration import UNKNOWN, Scale
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import LEAST, Ranked, Shares, fit, measured

SCALE = Scale(apart=0.5, alike=0.9)


def found(covered, whole, cosine=None, embedded=None):
    """Return candidates of which only these things are known."""
    size, none = len(cosine or ()), np.empty(0, "i8")
    has = np.ones(size, bool) if embedded is None else np.array(embedded, bool)
    cosines = None if cosine is None else np.array(cosine, "f8")
    return Candidates(
        columns={}, lexical=np.zeros(size), cosine=cosines, embedded=has, earlier=none, later=none,
        covered=covered, whole=whole,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (found(3.0, 6.0), 0.5),
        (found(7.0, 6.0), 1.0),
        (found(0.0, 6.0), 0.0),
        (found(0.0, 0.0), 0.0),
        (found(3.0, 6.0, [0.8, 0.2]), 0.625),
        (found(3.0, 6.0, [0.4]), 0.25),
        (found(3.0, 6.0, [0.95]), 0.75),
        (found(0.0, 0.0, [0.7]), 0.5),
        (found(3.0, 6.0, [0.9, 0.7], [False, True]), 0.5),
        (found(3.0, 6.0, [0.9, 0.7], [False, False]), 0.5),
    ],
)
def test_fit(candidates, expected):
    """It is the share of the query that the best one covers, what the nearest cosine means, or the mean of both."""
    assert expected == pytest.approx(fit(candidates, SCALE))


def test_fit_by_an_unknown_model():
    """With an unknown model the nearest cosine counts as a full fit."""
    assert 0.75 == fit(found(3.0, 6.0, [0.1]), UNKNOWN)


@given(st.lists(st.floats(-0.125, 1.25, width=16), max_size=20), st.floats(0, 1))
def test_measured(scores, how_well):
    """The best one scores what fits, the order stays, and the shares still add up."""
    before = Ranked(scores=np.array(scores), shares={"lexical": np.array(scores) / 2, "semantic": np.array(scores) / 2})
    after = measured(before, how_well)

    assert np.argsort(before.scores, kind="stable").tolist() == np.argsort(after.scores, kind="stable").tolist()
    assert after.scores.tolist() == pytest.approx(sum(after.shares.values(), np.zeros(len(scores))).tolist())
    if max(scores, default=0.0) > 0:
        assert max(how_well, LEAST) == pytest.approx(after.scores.max())


def test_shares():
    """Each share is what it was, times the factor, in the same order; factors of factors too."""
    shares = Shares({"lexical": np.array([1.0, 2.0]), "pinned": np.array([0, 1], "u1")}, 0.5)
    again = shares.times(0.5)

    assert {"lexical": [0.5, 1.0], "pinned": [0.0, 0.5]} == {name: each.tolist() for name, each in shares.items()}
    assert {"lexical": [0.25, 0.5], "pinned": [0.0, 0.25]} == {name: each.tolist() for name, each in again.items()}
    assert (["lexical", "pinned"], 2) == ([*again], len(again))


def test_digits():
    """A share of a column with few digits has as many as the score that it is a share of."""
    (share,) = Shares({"importance": np.array([0.1], "f4")}, 1 / 3).values()

    assert np.float64(np.float32(0.1)) / 3 == share[0]
