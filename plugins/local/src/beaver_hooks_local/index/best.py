"""The best of many values, without sorting all of them. Pure."""

import numpy as np

LEAST = float(np.finfo("f8").tiny)
"""What is not smaller is above 0."""


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
