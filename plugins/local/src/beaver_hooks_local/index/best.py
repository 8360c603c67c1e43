"""The best of many values, without sorting all of them. Pure."""

import numpy as np

COLUMNS = 16
"""How many rows many values are laid into, to see from the largest of each column what is not worth a look."""


def best(values: np.ndarray, limit: int) -> np.ndarray:
    """Return the places of the largest values, the largest first, at most `limit`; of equal ones the last first."""
    places = np.arange(len(values) - 1, -1, -1)
    if len(values) > limit:
        places = (values >= last_of_best(values, limit)).nonzero()[0][::-1]
    return places[(-values[places]).argsort(kind="stable")[:limit]]


def last_of_best(values: np.ndarray, limit: int) -> float:
    """Return the `limit`-th largest of values, of which there are as many at least."""
    width = len(values) // COLUMNS
    if width > COLUMNS * limit // 4:
        # As many columns hold a value that large, so the one that is looked for is not smaller.
        bound = last_of_best(values[: width * COLUMNS].reshape(COLUMNS, width).max(axis=0), limit)
        values = values[values >= bound]
    return float(np.partition(values, len(values) - limit)[len(values) - limit])
