"""Signals of the formulas: values of candidates, scaled to 0 to 1. Pure.

A new signal is a function here, then a weight in `formulas.Weights` and a share in `formulas.in_context`.
"""

import numpy as np

from beaver_memory.embedding.calibration import Scale
from beaver_memory.search.traits import LARGEST, SIZE, WORDS

DAY = 86_400.0

FAR = 120
"""The place of the candidate whose cosine counts as not near, if the model's own limit is not known."""

BEST = 3
"""The number of memories that count for their session."""

ENOUGH = 20
"""Words of a statement beyond which more of them tell nothing."""


def spread(values: np.ndarray) -> np.ndarray:
    """Return values scaled to 0 to 1, from the smallest to the largest; 1 for all if they are equal."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.full(len(values), 1.0 if high > 0 else 0.0)
    return (values - low) / (high - low)


def recency(updated: np.ndarray, now: float) -> np.ndarray:
    """Return 1 for now, a half for a day ago, and less for longer."""
    return DAY / (DAY + np.maximum(0.0, now - updated))


def nearness(cosine: np.ndarray, embedded: np.ndarray, scale: Scale) -> np.ndarray:
    """Return cosines scaled to 0 to 1: from a passage unrelated to the query to the nearest.

    The model's scale gives the lower limit, so that it does not depend on how many memories there are. If all cosines
    are near the limit, or below it, the nearest still differ from the others.
    """
    seen = cosine[embedded]
    if not len(seen):
        return np.zeros(len(cosine))
    high = float(seen.max())
    low = _edge(seen) if scale.apart is None else min(scale.apart, high - (scale.alike - scale.apart) / 2)
    if high <= low:
        return embedded.astype("f8")
    near: np.ndarray = np.maximum((cosine - low) / (high - low), 0.0) * embedded
    return near


def _edge(seen: np.ndarray) -> float:
    """Return the cosine of the last of the nearest candidates."""
    place = len(seen) - min(len(seen), FAR)
    return float(np.partition(seen, place)[place])


def together(sessions: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return, for each candidate, the mean of the best scores in its session; 0 without a session."""
    if not sessions.any():
        return np.zeros(len(said))
    # By session, best first: two simple sorts take less time than one by both.
    order = (-said).argsort()
    order = order[sessions[order].argsort(kind="stable")]
    ordered = sessions[order]
    edges = (ordered[1:] != ordered[:-1]).nonzero()[0]
    bounds = np.empty(len(edges) + 2, "i8")
    bounds[0], bounds[1:-1], bounds[-1] = 0, edges + 1, len(order)
    starts, ends = bounds[:-1], bounds[1:]
    running = np.zeros(len(order) + 1)
    said[order].cumsum(out=running[1:])
    sums = running[np.minimum(starts + BEST, ends)] - running[starts]
    if not ordered[0]:  # those of no session come first
        sums[0] = 0.0
    means = np.empty(len(said))
    means[order] = (sums / BEST).repeat(ends - starts)
    return means


def speaking(speakers: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return 1 for candidates with a speaker whom the query names, else 0; 0 for all if it does not separate any."""
    known = np.sort(names)
    places = known[:-1].searchsorted(speakers) if len(known) else 0
    named = (known[places] == speakers) & (speakers != 0) if len(known) else np.zeros(len(speakers), bool)
    return np.zeros(len(speakers)) if named.all() else named.astype("f8")


def beside(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the value of each candidate's neighbour; 0 for the place -1."""
    padded = np.zeros(len(values) + 1)
    padded[:-1] = values
    found: np.ndarray = padded[places]
    return found


def stated(traits: np.ndarray) -> np.ndarray:
    """Return how many words the statements of candidates have, up to 1 for enough of them."""
    share: np.ndarray = np.minimum(1.0, (traits & WORDS) / ENOUGH)
    return share


def size(traits: np.ndarray) -> np.ndarray:
    """Return how often the passages of each candidate's memory have doubled."""
    doubled: np.ndarray = traits >> SIZE & LARGEST
    return doubled
