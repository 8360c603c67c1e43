"""Selects the best of many values, without sorting all of them. Pure."""

from collections.abc import Callable

import attrs
import numpy as np

LEAST = float(np.finfo("f8").tiny)
"""The smallest value that counts as above 0."""

EACH = 2
"""Units of one memory among the best, at most, so that a long text does not displace all others."""

AHEAD = 4
"""The factor by which the search widens, repeatedly, if memories have several units."""


@attrs.frozen(kw_only=True, eq=False)
class TopK:
    """The units found in a block.

    Attributes:
        units: the best units, best first.
        scores: their scores.
        every: the scores of all units, visible or not, if all were scored; by vectors the score of a unit without a
            vector means nothing.
    """

    units: np.ndarray
    scores: np.ndarray
    every: np.ndarray | None = None


def best(values: np.ndarray, limit: int, least: float = -np.inf) -> np.ndarray:
    """Return the places of the largest values, the largest first, at most `limit`; of equal ones the last first.

    Args:
        values: numbers.
        limit: how many are wanted.
        least: smaller values do not count.
    """
    places = contenders(values, limit, least)[::-1]
    chosen: np.ndarray = places[(-values[places]).argsort(kind="stable")[:limit]]
    return chosen


def contenders(values: np.ndarray, limit: int, least: float = -np.inf) -> np.ndarray:
    """Return the places, in order, of the `limit` largest values above a bound, and of not many more."""
    rows, bound = len(values) // (2 * limit), least
    if rows > 1:
        width = len(values) // rows
        largest = values[: rows * width].reshape(rows, width).max(axis=0)
        # At least `limit` columns hold a value that large, so the last of the best is not smaller.
        bound = max(least, np.partition(largest, width - limit)[width - limit])
    above: np.ndarray = (values >= bound).nonzero()[0]
    return above


def few_of_each(find: Callable[[int], TopK], ids: np.ndarray, limit: int) -> TopK:
    """Return the best units, at most `limit`, and at most `EACH` of one memory.

    Args:
        find: finds a number of the best, fewer only if no more exist.
        ids: the memory of each unit.
        limit: how many are wanted.
    """
    ahead = AHEAD * limit
    while True:
        found = find(ahead)
        places = _few(ids[found.units])[:limit]
        if len(places) == limit or len(found.units) < ahead:
            return attrs.evolve(found, units=found.units[places], scores=found.scores[places])
        ahead *= AHEAD


def _few(ids: np.ndarray) -> np.ndarray:
    """Return the places of the first units of each memory."""
    order = ids.argsort(kind="stable")
    ordered, few = ids[order], np.ones(len(ids), bool)
    few[order[EACH:][ordered[EACH:] == ordered[:-EACH]]] = False
    places: np.ndarray = few.nonzero()[0]
    return places
