"""Formulas that say which candidate comes first. Pure: signals in, scores and the shares of each signal out."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import attrs
import numpy as np

from beaver_hooks_local.ranking.candidates import Candidates

DAY = 86_400.0
MOST_NAMES = 64
"""Words of a query that may be names."""

FAR = 120
"""The candidate whose nearness counts as none."""

CONSTANT = 10.0
"""How much the first places count above the others, where places are what counts."""


@attrs.frozen(kw_only=True)
class Weights:
    """What each signal of the default formula counts.

    Attributes:
        lexical, semantic: the two channels, together 1; where one is missing, the other one counts for both.
        neighbour: the better one of the turns before and after in the session.
        session: how well the best of the session do.
        speaker: who is named in the query has said it.
        mentions, importance, confidence, pinned: bounded boosts.
        recency: breaks ties.
    """

    lexical: float = 0.55
    semantic: float = 0.45
    neighbour: float = 0.4
    session: float = 0.6
    speaker: float = 0.2
    mentions: float = 0.02
    importance: float = 0.04
    confidence: float = 0.02
    pinned: float = 0.05
    recency: float = 0.005


@attrs.frozen(kw_only=True, eq=False)
class Ranked:
    """Scores of candidates, 0 to 1 or nearly so.

    Attributes:
        scores: by candidate.
        shares: what each signal adds, by its name.
    """

    scores: np.ndarray
    shares: Mapping[str, np.ndarray]


Formula = Callable[[Candidates, np.ndarray, float, Weights], Ranked]
"""Ranks candidates, given the words of the query as names, the moment that age is counted to, and weights."""


def in_context(found: Candidates, names: np.ndarray, now: float, weights: Weights) -> Ranked:
    """Rank by what is said and by what it stands beside: the default."""
    base, columns = _base(found, weights), found.columns
    said = _sum(base)
    # What all signals together can come to is 1, or nearly so.
    part = 1 / (1 + weights.neighbour + weights.session + weights.speaker)
    shares = {
        **{name: part * share for name, share in base.items()},
        "neighbour": part * weights.neighbour * _neighbour(found, said),
        "session": part * weights.session * _session(columns["sessions"], said),
        "speaker": part * weights.speaker * _speaker(columns["speakers"], names),
        "mentions": part * weights.mentions * _mentioned(columns["mentions"]),
        "importance": part * weights.importance * (columns["importance"] - 0.5),
        "confidence": part * weights.confidence * (columns["confidence"] - 1.0),
        "pinned": part * weights.pinned * columns["pinned"],
        "recency": part * weights.recency * recency(columns["updated"], now),
    }
    return Ranked(scores=_sum(shares), shares=shares)


def weighted(*, semantic: float, lexical: float, age: float, mentions: float = 0.0) -> Formula:
    """Return a formula of signals that are brought to 0 to 1 among the candidates, each times its weight."""

    def rank(found: Candidates, _: np.ndarray, now: float, __: Weights) -> Ranked:
        missing = found.cosine is None
        shares = {
            "lexical": (lexical + (semantic if missing else 0)) * spread(found.lexical),
            "semantic": np.zeros(found.size) if found.cosine is None else semantic * spread(found.cosine),
            "recency": age * recency(found.columns["updated"], now),
            "mentions": mentions * _mentioned(found.columns["mentions"] + 1.0),
        }
        return Ranked(scores=_sum(shares), shares=shares)

    return rank


def by_rank(found: Candidates, _: np.ndarray, __: float, ___: Weights) -> Ranked:
    """Rank by the places in each channel (reciprocal rank fusion)."""
    shares = {"lexical": _reciprocal(found.lexical)}
    if found.cosine is not None:
        shares["semantic"] = _reciprocal(np.where(found.embedded, found.cosine, 0))
    shares = {name: share * (CONSTANT + 1) / len(shares) for name, share in shares.items()}
    return Ranked(scores=_sum(shares), shares=shares)


FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "context": in_context,
        "weighted": weighted(semantic=0.55, lexical=0.35, age=0.10),
        "seed-002": weighted(semantic=0.25, lexical=0.45, age=0.15, mentions=0.15),
        "seed-003": weighted(semantic=0.55, lexical=0.35, age=0.10),
        "rrf": by_rank,
    }
)
"""The formulas by name."""


def spread(values: np.ndarray) -> np.ndarray:
    """Return values as 0 to 1, the smallest to the largest; 1 for all where they are the same."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.full(len(values), 1.0 if high > 0 else 0.0)
    return (values - low) / (high - low)


def recency(updated: np.ndarray, now: float) -> np.ndarray:
    """Return 1 for now, a half for a day ago, and less for longer."""
    return 1 / (1 + np.maximum(0.0, now - updated) / DAY)


def _sum(shares: Mapping[str, np.ndarray]) -> np.ndarray:
    each = iter(shares.values())
    total: np.ndarray = next(each).astype("f8")
    for share in each:
        total += share
    return total


def _mentioned(mentions: np.ndarray) -> np.ndarray:
    """Return 0 for what was said once, 1 for ten times and more."""
    share: np.ndarray = np.minimum(1.0, np.log(mentions.astype("f8")) / math.log(10))
    return share


def _base(found: Candidates, weights: Weights) -> dict[str, np.ndarray]:
    top = float(found.lexical.max(initial=0.0))
    lexical = found.lexical / top if top > 0 else found.lexical
    if found.cosine is None:
        return {"lexical": lexical, "semantic": np.zeros(found.size)}
    semantic = _nearness(found.cosine, found.embedded)
    # What has no vector yet is not to lose against what has one.
    share = np.where(found.embedded, weights.semantic, 0.0)
    if top <= 0:
        return {"lexical": lexical, "semantic": semantic}
    return {"lexical": (1 - share) * lexical, "semantic": share * semantic}


def _nearness(cosine: np.ndarray, embedded: np.ndarray) -> np.ndarray:
    """Return cosines as 0 to 1: from what is found with the last of the candidates to the nearest."""
    seen = cosine[embedded]
    if not len(seen):
        return np.zeros(len(cosine))
    kept = min(len(seen), FAR)
    low, high = float(np.partition(seen, len(seen) - kept)[len(seen) - kept]), float(seen.max())
    if high <= low:
        return embedded.astype("f8")
    return np.where(embedded, np.clip((cosine - low) / (high - low), 0, 1), 0)


def _neighbour(found: Candidates, base: np.ndarray) -> np.ndarray:
    padded = np.append(base, 0.0)  # -1 is the one beyond the end
    better: np.ndarray = np.maximum(padded[found.earlier], padded[found.later])
    return better


def _session(sessions: np.ndarray, base: np.ndarray, best: int = 3) -> np.ndarray:
    """Return, for each candidate, the mean of the best of its session."""
    if not len(base):
        return base
    order = np.lexsort((-base, sessions))
    ordered = sessions[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    which = np.cumsum(np.append(True, ordered[1:] != ordered[:-1])) - 1
    place = np.arange(len(order)) - starts[which]
    sums = np.bincount(which, weights=np.where(place < best, base[order], 0))
    means = np.empty(len(base))
    means[order] = sums[which] / best
    return np.where(sessions != 0, means, 0.0)


def _speaker(speakers: np.ndarray, names: np.ndarray) -> np.ndarray:
    named = np.zeros(len(speakers), bool)
    for name in names[names != 0][:MOST_NAMES]:
        named |= speakers == name
    return np.zeros(len(speakers)) if named.all() else named.astype("f8")


def _reciprocal(values: np.ndarray) -> np.ndarray:
    order = np.argsort(-values, kind="stable")
    place = np.empty(len(values))
    place[order] = np.arange(1, len(values) + 1)
    return np.where(values > 0, 1 / (CONSTANT + place), 0.0)
