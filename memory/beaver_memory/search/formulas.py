"""Formulas that rank candidates. Pure: signals in, scores and the shares of each signal out."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import attrs
import numpy as np

from beaver_memory.embedding.calibration import UNKNOWN, Scale
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.score_shares import Shares
from beaver_memory.search.signals import nearness, recency, reciprocal, speaking, spread, together

DIRECT = 4
"""How steeply the text of a memory replaces its context: hardly for half a fit, wholly for a whole one."""

TENFOLD = math.log(10)

TINY = 1e-9


@attrs.frozen(kw_only=True)
class Weights:
    """The weight of each signal in the default formula.

    Attributes:
        lexical, semantic: the two channels, 1 together; unless both are given, the scale of the embedder gives them. If
        one channel is missing, the other one counts for both.
        neighbour: the better one of the turns before and after in the session.
        session: how well the best memories of the session score.
        speaker: the query names the speaker of the memory.
        mentions, importance, confidence, pinned: bounded boosts.
        recency: breaks ties.
    """

    lexical: float | None = None
    semantic: float | None = None
    neighbour: float = 0.5
    session: float = 0.8
    speaker: float = 0.3
    mentions: float = 0.02
    importance: float = 0.04
    confidence: float = 0.02
    pinned: float = 0.05
    recency: float = 0.005

    @property
    def context(self) -> float:
        """The most that the whole context of a memory can add."""
        return self.neighbour + self.session

    def vectors(self, scale: Scale) -> float:
        """Return the weight of vectors; words have the rest."""
        if self.lexical is None or self.semantic is None:
            return scale.share
        return self.semantic / (self.lexical + self.semantic)


@attrs.frozen(kw_only=True, eq=False)
class Ranked:
    """Scores of candidates, 0 to 1 or nearly so.

    Attributes:
        scores: by candidate.
        shares: the share of each signal, by its name.
    """

    scores: np.ndarray
    shares: Mapping[str, np.ndarray]


class Formula(Protocol):
    """Ranks candidates."""

    def __call__(
        self, found: Candidates, names: np.ndarray, now: float, weights: Weights, scale: Scale = UNKNOWN, /
    ) -> Ranked:
        """Return the scores of candidates.

        Args:
            found: the candidates.
            names: the words of the query, as names.
            now: the moment at which age is measured.
            weights: the weights of the default formula.
            scale: the meaning of the vectors' cosines.
        """


def in_context(found: Candidates, names: np.ndarray, now: float, weights: Weights, scale: Scale = UNKNOWN, /) -> Ranked:
    """Rank by text and context; the default formula.

    Context counts if the text of a memory does not fit wholly by itself. A memory that fits wholly by its text has as
    much as the best context could add, so that no context puts another memory above it.
    """
    columns = found.columns
    lexical, semantic = _channels(found, weights, scale)
    said = lexical + semantic
    neighbour = weights.neighbour * _neighbour(found, said)
    session = weights.session * together(columns["sessions"], said)
    context = neighbour + session
    held = np.maximum(context, weights.context * said**DIRECT)
    shares = {
        "lexical": lexical,
        "semantic": semantic,
        "neighbour": neighbour,
        "session": session,
        "direct": held - context,
        "speaker": weights.speaker * speaking(columns["speakers"], names),
        "mentions": weights.mentions * _mentioned(columns["mentions"]),
        "importance": weights.importance * (columns["importance"] - 0.5),
        "confidence": weights.confidence * (columns["confidence"] - 1.0),
        "pinned": weights.pinned * columns["pinned"],
        "recency": weights.recency * recency(columns["updated"], now),
    }
    total = said + held
    for name in ("speaker", "mentions", "importance", "confidence", "pinned", "recency"):
        total += shares[name]
    if total.min(initial=0.0) < 0:
        _lift(total, shares)
    # All signals together add up to 1, or nearly so.
    part = 1 / (1 + weights.context + weights.speaker)
    return Ranked(scores=part * total, shares=Shares(shares, part))


def weighted(*, semantic: float, lexical: float, age: float, mentions: float = 0.0) -> Formula:
    """Return a formula of weighted signals, each scaled to 0 to 1 among the candidates."""

    def rank(found: Candidates, _: np.ndarray, now: float, __: Weights, ___: Scale = UNKNOWN, /) -> Ranked:
        missing = found.cosine is None
        shares = {
            "lexical": (lexical + (semantic if missing else 0)) * spread(found.lexical),
            "semantic": np.zeros(found.size) if found.cosine is None else semantic * spread(found.cosine),
            "recency": age * recency(found.columns["updated"], now),
            "mentions": mentions * _mentioned(found.columns["mentions"] + 1.0),
        }
        return Ranked(scores=_sum(shares), shares=shares)

    return rank


def by_rank(found: Candidates, _: np.ndarray, __: float, ___: Weights, ____: Scale = UNKNOWN, /) -> Ranked:
    """Rank by the places in each channel (reciprocal rank fusion)."""
    places = {"lexical": reciprocal(found.lexical)}
    if found.cosine is not None:
        places["semantic"] = reciprocal(np.where(found.embedded, found.cosine, 0))
    shares = {name: place / len(places) for name, place in places.items()}
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


def _sum(shares: Mapping[str, np.ndarray]) -> np.ndarray:
    total: np.ndarray = np.sum(list(shares.values()), axis=0)
    return total


def _lift(total: np.ndarray, shares: dict[str, np.ndarray]) -> None:
    """Raise totals below 0 to 0: importance and confidence take no more from a memory than it has."""
    # The shares have fewer digits than the total that includes them.
    taken = shares["importance"].astype("f8") + shares["confidence"]
    part = np.where(total < 0, np.maximum(0.0, total - taken) / np.maximum(-taken, TINY), 1.0)
    shares |= {name: part * shares[name] for name in ("importance", "confidence")}
    np.maximum(total, 0.0, out=total)


def _mentioned(mentions: np.ndarray) -> np.ndarray:
    """Return 0 for one mention, 1 for ten mentions and more."""
    if mentions.max(initial=1) <= 1:
        return np.zeros(len(mentions))
    share: np.ndarray = np.minimum(1.0, np.log(mentions.astype("f8")) / TENFOLD)
    return share


def _channels(found: Candidates, weights: Weights, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return the parts of words and vectors in the score of each candidate, both together 0 to 1."""
    top = float(found.lexical.max(initial=0.0))
    lexical = found.lexical / top if top > 0 else found.lexical
    if found.cosine is None:
        return lexical, np.zeros(found.size)
    semantic = nearness(found.cosine, found.embedded, scale)
    if top <= 0:
        return lexical, semantic
    # A candidate without a vector must not lose against one that has a vector.
    share = weights.vectors(scale) * found.embedded
    return (1 - share) * lexical, share * semantic


def _neighbour(found: Candidates, said: np.ndarray) -> np.ndarray:
    padded = np.zeros(len(said) + 1)  # -1 is the one beyond the end
    padded[:-1] = said
    better: np.ndarray = np.maximum(padded[found.earlier], padded[found.later])
    return better
