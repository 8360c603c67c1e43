"""Shares: a mapping that computes its values on access."""

import numpy as np

from beaver_memory.search.formulas import Shares


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
