"""How well anything that was found fits a query at all, so that scores mean the same in every search. Pure."""

from beaver_memory.embedding.calibration import Scale
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.search.score_shares import Shares

LEAST = 0.001
"""What the best one scores where nothing fits: there is an order still."""


def fit(found: Candidates, whole: float, scale: Scale) -> float:
    """Return how well the best that was found fits the query, 0 to 1.

    By words it is 1 where a memory of usual length has each word of the query, and less by what the missing ones
    weigh; by vectors it is what the nearest one's cosine means for that model. With both it is their mean.

    Args:
        found: the candidates.
        whole: what such a memory scores by words.
        scale: how the vectors are to be read.
    """
    covered = min(1.0, float(found.lexical.max(initial=0.0)) / whole) if whole > 0 else 0.0
    if found.cosine is None or not found.embedded.any():
        return covered
    near = _near(float(found.cosine[found.embedded].max()), scale)
    return (covered + near) / 2 if whole > 0 else near


def measured(ranked: Ranked, how_well: float) -> Ranked:
    """Return scores in the same order, the best of which says how well it fits; the others are in proportion.

    Args:
        ranked: scores that say only which one is better.
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
