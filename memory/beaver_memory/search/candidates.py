"""The candidates that a search finds in an index, as one set of arrays, independent of how blocks are cut."""

from collections.abc import Callable, Sequence
from functools import partial

import attrs
import numpy as np

from beaver_memory.filters import Filters
from beaver_memory.search import lexical, masks
from beaver_memory.search import vectors as vectors_of
from beaver_memory.search.block import COLUMNS, NONE
from beaver_memory.search.nearest import Find
from beaver_memory.search.neighbours import Links
from beaver_memory.search.snapshot import IndexState
from beaver_memory.search.top_k import TopK, few_of_each

WIDE = 120
"""Units that each channel contributes, unless more memories are wanted; see `width`."""

SPARED = 2
"""Units for each wanted memory: some are near-duplicates, or two of one memory."""

NEAR = 60
"""The best of the units, whose neighbours in the session become candidates too."""

CARRIED = (
    "ids",
    "passages",
    "sessions",
    "speakers",
    "traits",
    "updated",
    "mentions",
    "importance",
    "confidence",
    "pinned",
)
"""Columns that formulas read."""

_EMPTY = {
    **{name: np.empty(0, COLUMNS[name]) for name in CARRIED},
    "lexical": np.empty(0),
    "cosine": np.empty(0),
    "embedded": np.empty(0, bool),
}


@attrs.frozen(kw_only=True, eq=False)
class SearchSource:
    """An index to search.

    Attributes:
        state: the index.
        filters: the conditions for visible memories.
        finder: finds by vectors, in place of the index itself.
        shift: the offset of the ids of its memories, which separates them from those of another database.
    """

    state: IndexState
    filters: Filters
    finder: Find | None = None
    shift: int = 0


@attrs.frozen(kw_only=True, eq=False)
class Candidates:
    """Units that may answer the query, in order of their memories.

    Attributes:
        columns: the values of each unit, by name; see `search.block.COLUMNS`.
        lexical: the score of each unit by terms.
        cosine: the cosine of each unit with the query; `None` if the search used no vectors.
        embedded: which units have a vector.
        earlier, later: the places of its neighbours among the candidates, or -1.
        whole: the weights of all terms of the query together, but of the rarest ones only if it is long.
        covered: the most of these weights that one unit has, however long it is.
    """

    columns: dict[str, np.ndarray]
    lexical: np.ndarray
    cosine: np.ndarray | None
    embedded: np.ndarray
    earlier: np.ndarray
    later: np.ndarray
    whole: float = 0.0
    covered: float = 0.0

    @property
    def size(self) -> int:
        """The number of candidates."""
        return len(self.lexical)


def width(limit: int) -> int:
    """Return how many units each channel contributes for a number of wanted memories."""
    return max(WIDE, SPARED * limit)


def gather(
    sources: Sequence[SearchSource], terms: Sequence[int], query: np.ndarray | None, *, wide: int = WIDE
) -> Candidates:
    """Return the units found by terms and by vectors, and their neighbours.

    Args:
        sources: the indexes to search.
        terms: the query's terms.
        query: the query's vector, if there is one.
        wide: units that each channel contributes.
    """
    linked = [
        (Links(source.state, [masks.seen(part, source.filters) for part in source.state.parts]), source)
        for source in sources
    ]
    places = [(links, number, source) for links, source in linked for number in range(len(links.seen))]
    weighed = lexical.weigh(terms, [links.seen[number] for links, number, _ in places])
    looks = [
        _Look(links, number, each, query, source=source, wide=wide)
        for (links, number, source), each in zip(places, weighed, strict=True)
    ]
    near = zip(
        _best(looks, [(look.words.units, look.words.scores) for look in looks], wide),
        _best(looks, [(look.nearest.units, look.nearest.scores) for look in looks], wide),
        strict=True,
    )
    _note(looks, [np.concatenate(each) for each in near])
    whole = weighed[0].whole if weighed else 0.0
    together = _together(looks, with_vectors=query is not None)
    return attrs.evolve(together, whole=whole, covered=max((look.covered() for look in looks), default=0.0))


class _Look:
    """One part of an index, with the units found in it."""

    def __init__(
        self,
        links: Links,
        number: int,
        terms: lexical.Terms,
        query: np.ndarray | None,
        *,
        source: SearchSource,
        wide: int,
    ) -> None:
        self.links = links
        self.shift = source.shift
        self.number = number
        self.part = links.state.parts[number]
        self.terms = terms
        self.by_words = query is None
        self.query = query if self.part.vectors is not None else None
        self.allowed = links.seen[number].allowed
        self.chosen: list[np.ndarray] = []
        self.words = self._best(self._by_words, wide)
        self.nearest = self._best(partial(self._by_vectors, source.finder), wide)

    def _best(self, find: Callable[[int], TopK], wide: int) -> TopK:
        block = self.part.block
        return few_of_each(find, block.columns["ids"], wide) if block.has_long else find(wide)

    def _by_words(self, limit: int) -> TopK:
        return lexical.search(self.part.block, self.terms, allowed=self.allowed, limit=limit)

    def _by_vectors(self, finder: Find | None, limit: int) -> TopK:
        if self.query is None or self.part.vectors is None:
            return TopK(units=np.empty(0, "i8"), scores=np.empty(0))
        units = None if finder is None else finder(self.part, self.query, self.allowed, limit)
        if units is not None:
            cosines = vectors_of.score(self.part.vectors, self.query, units)
            order = np.lexsort((-units, -cosines))
            return TopK(units=units[order], scores=cosines[order])
        return vectors_of.search(self.part.vectors, self.query, allowed=self.allowed, limit=limit)

    def lexical_of(self, units: np.ndarray) -> np.ndarray:
        """Return the scores of units by terms."""
        every = self.words.every
        return lexical.score(self.part.block, self.terms, units) if every is None else every[units]

    def covered(self) -> float:
        """Return the most of the weights of the terms that one of the units found by words has."""
        held = lexical.coverage(self.part.block, self.terms, self.words.units, by_words=self.by_words)
        return float(held.max(initial=0.0))

    def cosines_of(self, units: np.ndarray) -> np.ndarray:
        """Return the cosines of units with the query."""
        if self.query is None or self.part.vectors is None:
            return np.zeros(len(units))
        every = self.nearest.every
        if every is None:
            return vectors_of.score(self.part.vectors, self.query, units)
        return np.where(self.part.vectors.present[units], every[units], 0.0)

    def ids(self, units: np.ndarray) -> np.ndarray:
        """Return the memories of units."""
        ids: np.ndarray = self.part.block.columns["ids"][units] + self.shift
        return ids

    def signals(self, units: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values of units, by name."""
        columns, vectors = self.part.block.columns, self.part.vectors
        return {
            **{name: columns[name][units] for name in CARRIED},
            "ids": self.ids(units),
            "lexical": self.lexical_of(units),
            "cosine": self.cosines_of(units),
            "embedded": np.zeros(len(units), bool) if vectors is None else vectors.present[units],
        }

    def units(self) -> np.ndarray:
        """Return the candidates of this part, ascending."""
        units: np.ndarray = np.concatenate([np.empty(0, "i8"), *self.chosen])
        units.sort()
        first = np.ones(len(units), bool)
        np.not_equal(units[1:], units[:-1], out=first[1:])
        units = units[first]
        return units if self.allowed is None else units[self.allowed[units]]


def _best(looks: Sequence[_Look], found: Sequence[tuple[np.ndarray, np.ndarray]], wide: int) -> list[np.ndarray]:
    """Add the best of a channel in all parts to the candidates; return the very best, by part."""
    if len(looks) == 1:
        looks[0].chosen.append(found[0][0])
        return [found[0][0][:NEAR]]
    whose = np.repeat(np.arange(len(looks)), [len(units) for units, _ in found])
    units, scores = (np.concatenate([np.empty(0), *(each[which] for each in found)]) for which in (0, 1))
    ids = np.concatenate([np.empty(0, "i8"), *(look.ids(of) for look, (of, _) in zip(looks, found, strict=True))])
    order = np.lexsort((-_passages(looks, found), -ids, -scores))[:wide]
    near = order[:NEAR]
    for number, look in enumerate(looks):
        look.chosen.append(units[order[whose[order] == number]].astype("i8"))
    return [units[near[whose[near] == number]].astype("i8") for number in range(len(looks))]


def _passages(looks: Sequence[_Look], found: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    each = [look.part.block.columns["passages"][units] for look, (units, _) in zip(looks, found, strict=True)]
    return np.concatenate([np.empty(0, "i8"), *each])


def _note(looks: Sequence[_Look], near: Sequence[np.ndarray]) -> None:
    """Add the neighbours of units to the candidates."""
    by_place = {(id(look.links), look.number): look for look in looks}
    for look, units in zip(looks, near, strict=True):
        which = look.links.apart(look.number, units)
        beside = look.links.beside(look.number, np.delete(units, which) if len(which) else units).reshape(-1)
        look.chosen.append(beside[beside != NONE])
        for unit in set(units[which].tolist()):
            for place in look.links.neighbours(look.number, unit):
                if place is not None:
                    by_place[id(look.links), place[0]].chosen.append(np.array([place[1]], "i8"))


def _together(looks: Sequence[_Look], *, with_vectors: bool) -> Candidates:
    found = [(look, look.units()) for look in looks]
    signals = _joined([look.signals(units) for look, units in found])
    # The units of a single block are already in order.
    order = np.lexsort((signals["passages"], signals["ids"])) if len(looks) > 1 else None
    earlier, later = _links(found, order)
    if order is not None:
        signals = {name: values[order] for name, values in signals.items()}
    lexical_, cosine, embedded = (signals.pop(name) for name in ("lexical", "cosine", "embedded"))
    return Candidates(
        columns=signals,
        lexical=lexical_,
        cosine=cosine if with_vectors else None,
        embedded=embedded,
        earlier=earlier,
        later=later,
    )


def _joined(each: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return arrays one behind the other, by name."""
    if len(each) == 1:
        return each[0]
    # The first array is empty: it gives the type if there are no others.
    return {name: np.concatenate([empty, *(one[name] for one in each)]) for name, empty in _EMPTY.items()}


def _links(found: Sequence[tuple[_Look, np.ndarray]], order: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each candidate's neighbours among the candidates, in the order of the candidates."""
    wanted = _wanted(found)
    # Parts follow one another, and the units of each are in order: so are the keys.
    keys = np.concatenate([np.empty(0, "i8"), *(units + _key(number, 0) for number, (_, units) in enumerate(found))])
    if not len(keys):
        return wanted[0], wanted[1]
    places = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    sides = np.where(keys[places] == wanted, places, -1)
    if order is None:
        return sides[0], sides[1]
    # -1 stands for the place beyond the end, and stays.
    new = np.append(np.empty(len(order), "i8"), -1)
    new[order] = np.arange(len(order))
    return new[sides[0]][order], new[sides[1]][order]


def _wanted(found: Sequence[tuple[_Look, np.ndarray]]) -> np.ndarray:
    """Return the keys of the earlier and later neighbours of all units; a key of no unit for a missing one."""
    numbers = {(id(look.links), look.number): number for number, (look, _) in enumerate(found)}
    keys = [np.empty((2, 0), "i8")]
    for number, (look, units) in enumerate(found):
        keys.append(look.links.beside(look.number, units) + _key(number, 0))
        for which in look.links.apart(look.number, units).tolist():
            for side, place in enumerate(look.links.neighbours(look.number, int(units[which]))):
                there = -1 if place is None else _key(numbers[id(look.links), place[0]], place[1])
                keys[-1][side, which] = there
    return np.concatenate(keys, axis=1)


def _key(number: int, unit: int) -> int:
    return (number << 32) + unit
