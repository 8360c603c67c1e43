"""Finds the units with the best scores for a query's terms: exactly those that scoring every unit would find.

Terms are processed from the one that can add most to the one that can add least (MaxScore). As soon as no unit that has
only the remaining terms can get among the best, the search adds no new units: it looks up the remaining terms for the
candidates alone.

Scores are those of BM25. The caller gives the statistics of all that is searched (number and length of units, frequency
of terms), so that scores do not depend on which block a unit is in.
"""

import functools
import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from beaver_memory.search.block import LENGTH_BITS, LONGEST, MOST_COUNT, Block, Postings
from beaver_memory.search.dates import is_date
from beaver_memory.search.top_k import LEAST, TopK, best

K1 = 1.2
B = 0.75
FINENESS = 64
"""Steps in which the mean length doubles: rounding to steps saves computing the weights anew all the time."""

EXHAUSTIVE = 1 << 17
"""Units, and entries of all lists, up to which every unit is scored: that takes less time than excluding some."""

FEW = 10
"""Memories without any of the words, added to the count: among few memories, a word that all have says little."""

ENOUGH = 8
"""Words of a query that a memory needs at most: no memory has all words of a long query."""

_NEARLY = 0.999
"""The tolerance for sums of the same numbers in another order."""


@attrs.frozen(kw_only=True, eq=False)
class Terms:
    """The terms of a query in one block, the rarest term of the whole search first.

    Attributes:
        lists: the slice of each term in the block's postings; an empty one for a term that does not occur.
        weights: the weight of each term: its rarity among all visible units.
        table: the value of each code of a posting.
        whole: the weights of all terms together; see `_whole`.
    """

    lists: tuple[slice, ...]
    weights: tuple[float, ...]
    table: np.ndarray
    whole: float


@attrs.frozen(kw_only=True, eq=False)
class Searched:
    """A block with its stale units.

    Attributes:
        stale: the units that do not count.
        live: the number of units that count.
        length: the length of these units together.
        frequencies: if the block is a sample of more units: how many of all have each term of a query. `live` and
            `length` are those of all, too.
    """

    block: Block
    stale: np.ndarray | None
    live: int
    length: int
    frequencies: Mapping[int, float] | None = None


def weigh(hashes: Sequence[int], searched: Sequence[Searched]) -> list[Terms]:
    """Return the terms by block, with their rarity in all blocks; terms that occur nowhere are left out."""
    wanted = np.array(hashes, "u8")
    lists = [each.block.terms.all_of(wanted) for each in searched]
    by_block = [_frequencies(each, hashes, parts) for each, parts in zip(searched, lists, strict=True)]
    frequencies = [*map(sum, zip(*by_block, strict=True))]
    total = sum(each.live for each in searched)
    weights = [_rarity(frequency, total) for frequency in frequencies]
    order = sorted((place for place, each in enumerate(frequencies) if each), key=frequencies.__getitem__)
    mean = sum(each.length for each in searched) / max(1, total)
    table = _table(round(FINENESS * math.log2(max(1.0, mean))))
    chosen = tuple(weights[place] for place in order)
    # A memory of another day may still say what a query asks for: dates rank, and do not tell whether anything fits.
    # Without any block there are no frequencies.
    whole = _whole([each for term, each in zip(hashes, frequencies, strict=False) if not is_date(term)], total)
    return [
        Terms(lists=tuple(each[place] for place in order), weights=chosen, table=table, whole=whole) for each in lists
    ]


def _rarity(frequency: float, total: int) -> float:
    return math.log(1 + (total + FEW - frequency + 0.5) / (frequency + 0.5))


def _whole(frequencies: Sequence[float], total: int) -> float:
    """Return the most that the terms of a query can add up to, without those beyond the rarest few.

    A term that occurs nowhere counts like one that occurs once: by rarity alone it would outweigh all others if there
    are few memories.
    """
    return sum(sorted(_rarity(max(1, frequency), total) for frequency in frequencies)[-ENOUGH:])


def search(block: Block, terms: Terms, *, allowed: np.ndarray | None, limit: int) -> TopK:
    """Return the best units of a block.

    Args:
        block: the block to search.
        terms: the terms of the query.
        allowed: the visible units; all of them if `None`.
        limit: the most units to return.
    """
    if max(block.size, sum(part.stop - part.start for part in terms.lists)) <= EXHAUSTIVE:
        every = _every(block, terms)
        units = best(every if allowed is None else every * allowed, limit, LEAST)
        return TopK(units=units, scores=every[units], every=every)
    units = _promising(block, terms, allowed, limit)
    scores = score(block, terms, units)
    places = best(scores, limit)
    return TopK(units=units[places], scores=scores[places])


def score(block: Block, terms: Terms, units: np.ndarray) -> np.ndarray:
    """Return the scores of given units: the same sums in the same order whatever block they are in."""
    found = np.zeros(len(units))
    for part, weight in zip(terms.lists, terms.weights, strict=True):
        listed = block.terms.units[part]
        if len(listed):
            # In the type of the list, or NumPy would convert all of it.
            places = np.minimum(listed.searchsorted(units.astype(listed.dtype)), len(listed) - 1)
            hit = (listed[places] == units).nonzero()[0]
            found[hit] += terms.table[block.terms.codes[part][places[hit]]] * weight
    return found


def coverage(block: Block, terms: Terms, units: np.ndarray) -> np.ndarray:
    """Return the weights of the terms that given units have, however long they are."""
    found = np.zeros(len(units))
    for part, weight in zip(terms.lists, terms.weights, strict=True):
        listed = block.terms.units[part]
        if len(listed):
            places = np.minimum(listed.searchsorted(units.astype(listed.dtype)), len(listed) - 1)
            found[listed[places] == units] += weight
    return found


def _every(block: Block, terms: Terms) -> np.ndarray:
    """Return the scores of all units."""
    filled = [(part, weight) for part, weight in zip(terms.lists, terms.weights, strict=True) if part.start < part.stop]
    if not filled:
        return np.zeros(block.size)
    units = np.concatenate([block.terms.units[part] for part, _ in filled])
    worth = terms.table.take(np.concatenate([block.terms.codes[part] for part, _ in filled]))
    worth *= np.repeat([weight for _, weight in filled], [part.stop - part.start for part, _ in filled])
    return np.bincount(units, worth, minlength=block.size)


def _promising(block: Block, terms: Terms, allowed: np.ndarray | None, limit: int) -> np.ndarray:
    """Return visible units, with the best of all among them."""
    lists = _lists(block.terms, terms)
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
            threshold = max(threshold, _threshold(scores[candidates], limit))
            candidates = candidates[scores[candidates] >= (threshold - rest) * _NEARLY]
    return (scores > threshold * _NEARLY).nonzero()[0] if candidates is None else candidates


@attrs.frozen(kw_only=True, eq=False)
class _List:
    """The units of one term.

    Attributes:
        units: ascending.
        weights: the value of the term in each unit.
        peak: the largest weight.
    """

    units: np.ndarray
    weights: np.ndarray
    peak: float


def _lists(postings: Postings, terms: Terms) -> list[_List]:
    """Return the lists of the terms that occur, the one that can add most first."""
    found = []
    table = terms.table.astype("f4")
    for part, weight in zip(terms.lists, terms.weights, strict=True):
        if part.start < part.stop:
            weights = table.take(postings.codes[part]) * np.float32(weight)
            found.append(_List(units=postings.units[part], weights=weights, peak=float(weights.max())))
    return sorted(found, key=lambda each: -each.peak)


@functools.lru_cache(maxsize=32)
def _table(step: int) -> np.ndarray:
    """Return the value of each code of a posting if the mean length is that many steps."""
    codes = np.arange(1 << 16)
    counts, lengths = codes >> LENGTH_BITS, np.maximum(1, codes & LONGEST)
    share = B * lengths / 2 ** (step / FINENESS)
    worth: np.ndarray = counts * (K1 + 1) / np.maximum(counts + K1 * (1 - B + share), 1 / MOST_COUNT)
    return worth


def _frequencies(searched: Searched, hashes: Sequence[int], parts: Sequence[slice]) -> list[float]:
    """Return for each term how many counted units have it."""
    if searched.frequencies is not None:
        return [searched.frequencies.get(term, 0) for term in hashes]
    listed: list[float] = [part.stop - part.start for part in parts]
    if searched.stale is None:
        return listed
    units = searched.block.terms.units
    return [
        count and count - np.count_nonzero(searched.stale[units[part]])
        for count, part in zip(listed, parts, strict=True)
    ]


def _add(scores: np.ndarray, each: _List, allowed: np.ndarray | None, limit: int) -> float:
    """Add a list to the scores; return a score that at least `limit` units now reach."""
    units, weights = each.units, each.weights
    if allowed is not None:
        chosen = allowed[units]
        units, weights = units[chosen], weights[chosen]
    now = scores[units] + weights
    scores[units] = now
    return _threshold(now, limit)


def _look_up(scores: np.ndarray, candidates: np.ndarray, each: _List) -> None:
    places = np.minimum(each.units.searchsorted(candidates.astype(each.units.dtype)), len(each.units) - 1)
    hit = each.units[places] == candidates
    scores[candidates[hit]] += each.weights[places[hit]]


def _threshold(scores: np.ndarray, limit: int) -> float:
    """Return the score of the last of the `limit` best, 0 if there are fewer."""
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit]) if len(scores) >= limit else 0.0
