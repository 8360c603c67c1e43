"""Finds the units that a query's terms say most about: exactly those that scoring every unit would find.

Terms are taken from the one that can add most to the one that can add least (MaxScore). As soon as no unit that has
only the remaining terms could still get among the best, no new units are looked at: the remaining terms are looked up
for those that are candidates already.

Scores are BM25's. What it needs to know of all that is searched (how much there is, how long it is, how rare a term is)
is given to it, so that they do not depend on which block a unit is in.
"""

import functools
import math
from collections.abc import Sequence

import attrs
import numpy as np

from beaver_hooks_local.index.block import LENGTH_BITS, LONGEST, MOST_COUNT, Block, Postings

K1 = 1.2
B = 0.75
FINENESS = 64
"""Steps in which the mean length doubles: it is rounded to them, so that weights need not be made anew all the time."""

_NEARLY = 0.999
"""Sums of the same numbers in another order differ a little."""


@attrs.frozen(kw_only=True)
class Term:
    """A term of a query.

    Attributes:
        hash: what stands for it.
        weight: how much it says: its rarity among all that may be searched.
    """

    hash: int
    weight: float


@attrs.frozen(kw_only=True, eq=False)
class Terms:
    """The terms of a query that occur at all, and what a code of a posting is worth."""

    each: tuple[Term, ...]
    table: np.ndarray


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """Units with scores, best first."""

    units: np.ndarray
    scores: np.ndarray


@attrs.frozen(kw_only=True, eq=False)
class Searched:
    """A block with what is stale in it.

    Attributes:
        stale: which units are not to be counted.
        live: how many are.
        length: how long those are together.
    """

    block: Block
    stale: np.ndarray | None
    live: int
    length: int


def weigh(hashes: Sequence[int], searched: Sequence[Searched]) -> Terms:
    """Return the terms that occur in any of the blocks, with their rarity in all of them."""
    total = sum(each.live for each in searched)
    found = []
    for hash_ in hashes:
        frequency = sum(_frequency(each, hash_) for each in searched)
        if frequency:
            found.append(Term(hash=hash_, weight=math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))))
    mean = sum(each.length for each in searched) / max(1, total)
    return Terms(each=tuple(found), table=_table(round(FINENESS * math.log2(max(1.0, mean)))))


def search(block: Block, terms: Terms, *, allowed: np.ndarray | None, limit: int) -> Found:
    """Return the best units of a block.

    Args:
        block: where to look.
        terms: what to look for.
        allowed: which units may be seen; all of them if `None`.
        limit: how many to return at most.
    """
    lists = _lists(block.terms, terms)
    if not lists:
        return Found(units=np.empty(0, "u4"), scores=np.empty(0, "f4"))
    scores = np.zeros(block.size, "f4")
    rest, threshold = sum(each.peak for each in lists), 0.0
    candidates: np.ndarray | None = None
    for each in lists:
        rest -= each.peak
        if candidates is None:
            threshold = max(threshold, _add(scores, each, allowed, limit))
            if threshold > rest > 0:
                candidates = (scores >= (threshold - rest) * _NEARLY).nonzero()[0]
        else:
            _look_up(scores, candidates, each)
            threshold = max(threshold, _last_of_best(scores[candidates], limit))
            candidates = candidates[scores[candidates] >= (threshold - rest) * _NEARLY]
    if candidates is None:
        candidates = (scores > threshold * _NEARLY).nonzero()[0]
    return _best(candidates, scores[candidates], limit)


def score(block: Block, terms: Terms, units: np.ndarray) -> np.ndarray:
    """Return the scores of given units: the same sums in the same order whatever block they are in."""
    found = np.zeros(len(units))
    for term in terms.each:
        place = block.terms.find(term.hash)
        if place < 0:
            continue
        part = block.terms.of(place)
        listed, codes = block.terms.units[part], block.terms.codes[part]
        places = np.minimum(listed.searchsorted(units), len(listed) - 1)
        hit = listed[places] == units
        found[hit] += terms.table[codes[places[hit]]] * term.weight
    return found


@attrs.frozen(kw_only=True, eq=False)
class _List:
    """The units of one term.

    Attributes:
        weights: what the term is worth in each.
        peak: the largest of them.
    """

    units: np.ndarray
    weights: np.ndarray
    peak: float


def _lists(postings: Postings, terms: Terms) -> list[_List]:
    """Return the lists of the terms that occur, the one that can add most first."""
    found = []
    for term in terms.each:
        place = postings.find(term.hash)
        if place >= 0:
            part = postings.of(place)
            weights = terms.table[postings.codes[part]] * np.float32(term.weight)
            found.append(_List(units=postings.units[part], weights=weights, peak=float(weights.max())))
    return sorted(found, key=lambda each: -each.peak)


@functools.lru_cache(maxsize=32)
def _table(step: int) -> np.ndarray:
    """Return what each code of a posting is worth where the mean length is that many steps."""
    codes = np.arange(1 << 16)
    counts, lengths = codes >> LENGTH_BITS, np.maximum(1, codes & LONGEST)
    share = B * lengths / 2 ** (step / FINENESS)
    worth: np.ndarray = counts * (K1 + 1) / np.maximum(counts + K1 * (1 - B + share), 1 / MOST_COUNT)
    return worth.astype("f4")


def _frequency(searched: Searched, hash_: int) -> int:
    postings = searched.block.terms
    place = postings.find(hash_)
    if place < 0:
        return 0
    part = postings.of(place)
    if searched.stale is None:
        return int(part.stop - part.start)
    return int(part.stop - part.start) - int(np.count_nonzero(searched.stale[postings.units[part]]))


def _add(scores: np.ndarray, each: _List, allowed: np.ndarray | None, limit: int) -> float:
    """Add a list to the scores; return a score that at least `limit` units have now."""
    units, weights = each.units, each.weights
    if allowed is not None:
        chosen = allowed[units]
        units, weights = units[chosen], weights[chosen]
    now = scores[units] + weights
    scores[units] = now
    return _last_of_best(now, limit)


def _look_up(scores: np.ndarray, candidates: np.ndarray, each: _List) -> None:
    places = np.minimum(each.units.searchsorted(candidates), len(each.units) - 1)
    hit = each.units[places] == candidates
    scores[candidates[hit]] += each.weights[places[hit]]


def _last_of_best(scores: np.ndarray, limit: int) -> float:
    """Return the score of the last one of the best, 0 if there are not so many."""
    if len(scores) < limit:
        return 0.0
    ordered = scores.copy()
    ordered.partition(len(scores) - limit)
    return float(ordered[len(scores) - limit])


def _best(units: np.ndarray, scores: np.ndarray, limit: int) -> Found:
    if len(units) > limit:
        edge = _last_of_best(scores, limit)
        above, at_edge = (scores > edge).nonzero()[0], (scores == edge).nonzero()[0]
        # Of equal ones at the edge the newest, so that the answer does not depend on the order of work.
        chosen = np.concatenate([above, at_edge[::-1][: limit - len(above)]])
        units, scores = units[chosen], scores[chosen]
    order = np.lexsort((-units.astype("i8"), -scores))
    return Found(units=units[order], scores=scores[order])
