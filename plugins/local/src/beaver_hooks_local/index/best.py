"""The best of many values, without sorting all of them. Pure."""

import numpy as np


def best(values: np.ndarray, limit: int) -> np.ndarray:
    """Return the places of the largest values, the largest first, at most `limit`; of equal ones the last first."""
    places = contenders(values, limit)[::-1]
    chosen: np.ndarray = places[(-values[places]).argsort(kind="stable")[:limit]]
    return chosen


def contenders(values: np.ndarray, limit: int) -> np.ndarray:
    """Return the places, in order, of all values above a bound: the `limit` largest ones and not many more."""
    rows = len(values) // (2 * limit)
    if rows <= 1:
        return np.arange(len(values))
    width = len(values) // rows
    largest = values[: rows * width].reshape(rows, width).max(axis=0)
    # So many columns hold a value that large that the last one that is looked for is not smaller.
    bound = np.partition(largest, width - limit)[width - limit]
    above: np.ndarray = (values >= bound).nonzero()[0]
    return above
