"""The best of many values, without sorting all of them. Pure."""

from collections.abc import Callable

import attrs
import numpy as np

LEAST = float(np.finfo("f8").tiny)
"""What is not smaller is above 0."""

EACH = 2
"""Units of one memory that may be among the best, so that a long text does not take the places of all others."""

AHEAD = 4
"""How many times as many are looked for, and again, where memories have several units."""


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """What was found in a block.

    Attributes:
        units: the best, best first.
        scores: theirs.
        every: the scores of all units, if all were scored, whether they may be seen or not; by vectors they say nothing
            of those that have none.
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
    """Return the places, in order, of all values above a bound: the `limit` largest ones and not many more."""
    rows, bound = len(values) // (2 * limit), least
    if rows > 1:
        width = len(values) // rows
        largest = values[: rows * width].reshape(rows, width).max(axis=0)
        # So many columns hold a value that large that the last one that is looked for is not smaller.
        bound = max(least, np.partition(largest, width - limit)[width - limit])
    above: np.ndarray = (values >= bound).nonzero()[0]
    return above


def few_of_each(find: Callable[[int], Found], ids: np.ndarray, limit: int) -> Found:
    """Return the best that can be found, at most `limit`, and at most `EACH` of one memory.

    Args:
        find: finds so many of the best, fewer only where there are no more.
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
    """Return the places of the first ones of each memory."""
    order = ids.argsort(kind="stable")
    ordered, few = ids[order], np.ones(len(ids), bool)
    few[order[EACH:][ordered[EACH:] == ordered[:-EACH]]] = False
    places: np.ndarray = few.nonzero()[0]
    return places
