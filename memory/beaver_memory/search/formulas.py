"""Formulas that rank candidates. Pure: signals in, scores and the shares of each signal out.

A formula gives the order. How well the best result fits a query gives the scores, which mean the same in every search.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import attrs
import numpy as np

from beaver_memory.embedding.calibration import UNKNOWN, Scale
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.intent import Intent
from beaver_memory.search.signals import beside, nearness, recency, size, speaking, spread, stated, together
from beaver_memory.search.traits import ASKS, FIRST, NUMBER, RULE, TIME

LEAST = 0.001
"""The score of the best result if nothing fits; results keep their order."""

DIRECT = 4
"""How steeply the text of a memory replaces its context: hardly for half a fit, wholly for a whole one."""

FIT = 0.8
"""Text and context together from which on the speaker and the traits of a memory count in full."""

TENFOLD = math.log(10)

TINY = 1e-9

BOOSTS = ("size", "mentions", "importance", "confidence", "pinned", "recency")
"""Shares that do not depend on the query."""


class Shares(Mapping[str, np.ndarray]):
    """Shares by signal, each times a factor.

    Args:
        shares: the share of each signal, before the factor.
        factor: the factor for all shares.
    """

    def __init__(self, shares: Mapping[str, np.ndarray], factor: float) -> None:
        self._shares = shares
        self._factor = factor

    def times(self, factor: float) -> "Shares":
        """Return the same shares, multiplied by another factor as well."""
        return Shares(self._shares, self._factor * factor)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    @cached_property
    def _made(self) -> Mapping[str, np.ndarray]:
        # Importance and confidence have fewer digits than the scores that they are a share of.
        return {name: np.multiply(share, self._factor, dtype="f8") for name, share in self._shares.items()}


@attrs.frozen(kw_only=True)
class Weights:
    """The weight of each signal in the default formula.

    Attributes:
        lexical, semantic: the two channels, 1 together; unless both are given, the scale of the embedder gives them. If
        one channel is missing, the other one counts for both.
        neighbour: the better one of the turns before and after in the session.
        before: the turn before the one before.
        answer: the turn before, if it ends with a question.
        session: how well the best memories of the session score.
        speaker: the query names the speaker of the memory, or speaks of its asker in the first person.
        first_person, statement: such a speaker speaks of himself; makes a statement of many words.
        rule: a standing rule of the asker, or of no named speaker.
        time, when: the memory names a time; the query asks for one, too.
        number: the memory has a number, and the query asks for one.
        size: taken for each doubling of the passages of a memory: of many passages one is near by chance.
        mentions, importance, confidence, pinned: bounded boosts.
        recency: breaks ties.
    """

    lexical: float | None = None
    semantic: float | None = None
    neighbour: float = 0.5
    before: float = 0.1
    answer: float = 0.1
    session: float = 0.8
    speaker: float = 0.3
    first_person: float = 0.1
    statement: float = 0.2
    rule: float = 0.2
    time: float = 0.05
    when: float = 0.2
    number: float = 0.1
    size: float = 0.05
    mentions: float = 0.02
    importance: float = 0.04
    confidence: float = 0.02
    pinned: float = 0.05
    recency: float = 0.005

    @property
    def context(self) -> float:
        """The most that the whole context of a memory can add."""
        return self.neighbour + self.before + self.answer + self.session

    @property
    def speech(self) -> float:
        """The most that speaker and traits of a memory can add to nearly any query."""
        return self.speaker + self.first_person + self.statement

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
        self, found: Candidates, intent: Intent, now: float, weights: Weights, scale: Scale = UNKNOWN, /
    ) -> Ranked:
        """Return the scores of candidates.

        Args:
            found: the candidates.
            intent: what the query asks for.
            now: the moment at which age is measured.
            weights: the weights of the default formula.
            scale: the meaning of the vectors' cosines.
        """


def in_context(found: Candidates, intent: Intent, now: float, weights: Weights, scale: Scale = UNKNOWN, /) -> Ranked:
    """Rank by text, context, speaker and traits; the default formula.

    Context counts if the text of a memory does not fit wholly by itself. A memory that fits wholly by its text has as
    much as the best context could add, so that no context puts another memory above it. Speaker and traits count as
    far as text and context fit.
    """
    columns = found.columns
    lexical, semantic = _channels(found, weights, scale)
    said = lexical + semantic
    around = _context(found, said, weights)
    context = _sum(around)
    held = np.maximum(context, weights.context * said**DIRECT)
    fit = np.minimum(1.0, (said + context) / FIT)
    speech = _speech(columns, intent, weights, fit)
    shares = {
        "lexical": lexical,
        "semantic": semantic,
        **around,
        "direct": held - context,
        **speech,
        "size": -weights.size * size(columns["traits"]),
        "mentions": weights.mentions * _mentioned(columns["mentions"]),
        "importance": weights.importance * (columns["importance"] - 0.5),
        "confidence": weights.confidence * (columns["confidence"] - 1.0),
        "pinned": weights.pinned * columns["pinned"],
        "recency": weights.recency * recency(columns["updated"], now),
    }
    total = said + held
    for name in (*speech, *BOOSTS):
        total += shares[name]
    if total.min(initial=0.0) < 0:
        _lift(total, shares)
    # All signals together add up to 1, or nearly so.
    part = 1 / (1 + weights.context + weights.speech)
    return Ranked(scores=part * total, shares=Shares(shares, part))


def _weighted(*, semantic: float, lexical: float, age: float, mentions: float = 0.0) -> Formula:
    """Return a formula of weighted signals, each scaled to 0 to 1 among the candidates."""

    def rank(found: Candidates, _: Intent, now: float, __: Weights, ___: Scale = UNKNOWN, /) -> Ranked:
        missing = found.cosine is None
        shares = {
            "lexical": (lexical + (semantic if missing else 0)) * spread(found.lexical),
            "semantic": np.zeros(found.size) if found.cosine is None else semantic * spread(found.cosine),
            "recency": age * recency(found.columns["updated"], now),
            "mentions": mentions * _mentioned(found.columns["mentions"] + 1.0),
        }
        return Ranked(scores=_sum(shares), shares=shares)

    return rank


FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "context": in_context,
        "seed-002": _weighted(semantic=0.25, lexical=0.45, age=0.15, mentions=0.15),
        "seed-003": _weighted(semantic=0.55, lexical=0.35, age=0.10),
    }
)
"""The formulas by name."""


def _sum(shares: Mapping[str, np.ndarray]) -> np.ndarray:
    first, *others = shares.values()
    total = first.copy()
    for share in others:
        total += share
    return total


def _lift(total: np.ndarray, shares: dict[str, np.ndarray]) -> None:
    """Raise totals below 0 to 0: size, importance and confidence take no more from a memory than it has."""
    # The shares have fewer digits than the total that includes them.
    taken = shares["importance"].astype("f8") + shares["confidence"] + shares["size"]
    part = np.where(total < 0, np.maximum(0.0, total - taken) / np.maximum(-taken, TINY), 1.0)
    shares |= {name: part * shares[name] for name in ("importance", "confidence", "size")}
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


def _context(found: Candidates, said: np.ndarray, weights: Weights) -> dict[str, np.ndarray]:
    """Return the shares of the neighbours of each candidate."""
    last = beside(said, found.earlier)
    asks = found.columns["traits"] & ASKS != 0
    return {
        "neighbour": weights.neighbour * np.maximum(last, beside(said, found.later)),
        "before": weights.before * beside(last, found.earlier),
        "answer": weights.answer * beside(said * asks, found.earlier),
        "session": weights.session * together(found.columns["sessions"], said),
    }


def _speech(
    columns: Mapping[str, np.ndarray], intent: Intent, weights: Weights, fit: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the shares of who has said each candidate, and of its traits; each as far as the candidate fits."""
    speakers, traits = columns["speakers"], columns["traits"]
    speaks = fit * speaking(speakers, intent.names)
    own = (speakers == 0) | (speakers == np.uint64(intent.asker))
    shares = {
        "speaker": weights.speaker * speaks,
        "first_person": weights.first_person * speaks * (traits & FIRST != 0),
        "statement": weights.statement * speaks * stated(traits),
        "rule": weights.rule * fit * (own & (traits & RULE != 0)),
        "time": (weights.time + weights.when * intent.when) * fit * (traits & TIME != 0),
    }
    if intent.how_many:
        shares["number"] = weights.number * fit * (traits & NUMBER != 0)
    return shares


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
