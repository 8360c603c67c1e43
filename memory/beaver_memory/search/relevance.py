"""Measures how well the best result fits a query, so that scores mean the same in every search. Pure."""

from beaver_memory.embedding.calibration import Scale
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.search.score_shares import Shares

LEAST = 0.001
"""The score of the best result if nothing fits; results keep their order."""


def fit(found: Candidates, scale: Scale) -> float:
    """Return how well the best candidate fits the query, 0 to 1.

    By words it is 1 if a memory has each word of the query, however long it is, and less by the weights of the missing
    ones; by vectors it is the meaning of the nearest cosine for that model. With both it is their mean.

    Args:
        found: the candidates.
        scale: the meaning of the vectors' cosines.
    """
    covered = min(1.0, found.covered / found.whole) if found.whole > 0 else 0.0
    if found.cosine is None or not found.embedded.any():
        return covered
    near = _near(float(found.cosine[found.embedded].max()), scale)
    return (covered + near) / 2 if found.whole > 0 else near


def measured(ranked: Ranked, how_well: float) -> Ranked:
    """Return scores in the same order and proportion, so that the best one says how well it fits.

    Args:
        ranked: scores that give only the order.
        how_well: see `fit`.
    """
    top = float(ranked.scores.max(initial=0.0))
    if top <= 0:
        return ranked
    factor = max(LEAST, how_well) / top
    shares = ranked.shares if isinstance(ranked.shares, Shares) else Shares(ranked.shares, 1.0)
    return Ranked(scores=ranked.scores * factor, shares=shares.times(factor))


def _near(cosine: float, scale: Scale) -> float:
    if scale.apart is None:
        return 1.0
    return min(max((cosine - scale.apart) / (scale.alike - scale.apart), 0.0), 1.0)
