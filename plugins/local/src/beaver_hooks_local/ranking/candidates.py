"""What a search has found in an index, as one set of arrays for ranking. It does not depend on how blocks are cut."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import attrs
import numpy as np

from beaver_hooks_local.filters import Filters
from beaver_hooks_local.index import lexical, masks
from beaver_hooks_local.index import vectors as vectors_of
from beaver_hooks_local.index.links import Place, neighbours
from beaver_hooks_local.index.nearest import Find
from beaver_hooks_local.index.parts import Part, State

WIDE = 120
"""Units that each channel brings."""

NEAR = 60
"""The best of them whose neighbours in the session are looked at too."""

CARRIED = (
    "ids",
    "passages",
    "sessions",
    "speakers",
    "created",
    "updated",
    "mentions",
    "importance",
    "confidence",
    "pinned",
)


@attrs.frozen(kw_only=True, eq=False)
class Candidates:
    """Units that may be what is looked for, in order of their memories.

    Attributes:
        columns: what is known of each, by name; see `index.block.COLUMNS`.
        lexical: what its terms score.
        cosine: how near its vector is; `None` where nothing was looked up by vectors.
        embedded: which units have a vector.
        earlier, later: the places of its neighbours among the candidates, or -1.
    """

    columns: dict[str, np.ndarray]
    lexical: np.ndarray
    cosine: np.ndarray | None
    embedded: np.ndarray
    earlier: np.ndarray
    later: np.ndarray

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.lexical)


def gather(
    states: Sequence[State],
    terms: Sequence[int],
    query: np.ndarray | None,
    filters: Filters,
    finders: Sequence[Find | None] = (),
) -> Candidates:
    """Return what is found by terms, by vectors, and beside what is found.

    Args:
        states: the indexes to search.
        terms: the query's terms.
        query: the query's vector, if there is one.
        filters: what may be seen.
        finders: what finds by vectors in each state, where that is not the index itself.
    """
    weighed = lexical.weigh(terms, [part for state in states for part in state.parts])
    places = [
        (state, number, finder) for state, finder in zip_longest(states, finders) for number in range(len(state.parts))
    ]
    looks = [_Look(state, number, weighed, query, filters, finder=finder) for state, number, finder in places]
    for near in (_best(looks, [look.words for look in looks]), _best(looks, [look.nearest for look in looks])):
        _note(looks, near)
    return _together(looks, with_vectors=query is not None)


class _Look:
    """One part of an index, and what was found in it."""

    def __init__(
        self,
        state: State,
        number: int,
        terms: lexical.Terms,
        query: np.ndarray | None,
        filters: Filters,
        *,
        finder: Find | None,
    ) -> None:
        self.state = state
        self.number = number
        self.part: Part = state.parts[number]
        self.terms = terms
        self.query = query if self.part.vectors is not None else None
        self.allowed = masks.allowed(self.part.block, filters, self.part.stale)
        self.chosen: list[np.ndarray] = []
        self.words = self._words()
        self.nearest = self._nearest(finder)

    def _words(self) -> tuple[np.ndarray, np.ndarray]:
        found = lexical.search(self.part.block, self.terms, allowed=self.allowed, limit=WIDE)
        return found.units.astype("i8"), found.scores

    def _nearest(self, finder: Find | None) -> tuple[np.ndarray, np.ndarray]:
        if self.query is None or self.part.vectors is None:
            return np.empty(0, "i8"), np.empty(0)
        units = None if finder is None else finder(self.part, self.query, self.allowed, WIDE)
        if units is not None:
            cosines = vectors_of.score(self.part.vectors, self.query, units)
            order = np.lexsort((-units, -cosines))
            return units[order], cosines[order]
        return vectors_of.search(self.part.vectors, self.query, allowed=self.allowed, limit=WIDE)

    def lexical_of(self, units: np.ndarray) -> np.ndarray:
        """Return what the terms score in units."""
        return lexical.score(self.part.block, self.terms, units)

    def cosines_of(self, units: np.ndarray) -> np.ndarray:
        """Return how near units are."""
        if self.query is None or self.part.vectors is None:
            return np.zeros(len(units))
        return vectors_of.score(self.part.vectors, self.query, units)

    def embedded(self, units: np.ndarray) -> np.ndarray:
        """Return which units have a vector."""
        vectors = self.part.vectors
        return np.zeros(len(units), bool) if vectors is None else vectors.present[units]

    def units(self) -> np.ndarray:
        """Return the candidates of this part, ascending."""
        units: np.ndarray = np.concatenate([np.empty(0, "i8"), *self.chosen])
        units.sort()
        units = units[np.append(True, units[1:] != units[:-1])[: len(units)]]
        return units if self.allowed is None else units[self.allowed[units]]


def _best(looks: Sequence[_Look], found: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Note the best of a channel in all parts as candidates; return the very best, by part."""
    if len(looks) == 1:
        looks[0].chosen.append(found[0][0])
        return [found[0][0][:NEAR]]
    whose = np.repeat(np.arange(len(looks)), [len(units) for units, _ in found])
    units, scores = (np.concatenate([np.empty(0), *(each[which] for each in found)]) for which in (0, 1))
    ids = _column(looks, found, "ids")
    order = np.lexsort((-_column(looks, found, "passages").astype("i8"), -ids, -scores))[:WIDE]
    near = order[:NEAR]
    for number, look in enumerate(looks):
        look.chosen.append(units[order[whose[order] == number]].astype("i8"))
    return [units[near[whose[near] == number]].astype("i8") for number in range(len(looks))]


def _column(looks: Sequence[_Look], found: Sequence[tuple[np.ndarray, np.ndarray]], name: str) -> np.ndarray:
    each = [look.part.block.columns[name][units] for look, (units, _) in zip(looks, found, strict=True)]
    return np.concatenate([np.empty(0, "i8"), *each])


def _note(looks: Sequence[_Look], near: Sequence[np.ndarray]) -> None:
    """Note the neighbours of units as candidates too."""
    by_place = {(id(look.state), look.number): look for look in looks}
    for look, units in zip(looks, near, strict=True):
        if not len(units):
            continue
        block = look.part.block
        if not len(look.state.split):
            beside = np.concatenate([block.earlier[units], block.later[units]])
            look.chosen.append(beside[beside < block.size].astype("i8"))
            continue
        places: Iterable[Place | None] = (
            place for side in neighbours(look.state, look.number, units) for place in side
        )
        for place in places:
            if place is not None:
                by_place[id(look.state), place[0]].chosen.append(np.array([place[1]], "i8"))


def _together(looks: Sequence[_Look], *, with_vectors: bool) -> Candidates:
    units = [look.units() for look in looks]
    found = list(zip(looks, units, strict=True))
    columns = {name: _joined(look.part.block.columns[name][each] for look, each in found) for name in CARRIED}
    # One block's units are in order already.
    order = np.lexsort((columns["passages"], columns["ids"])) if len(looks) > 1 else slice(None)
    earlier, later = _links(found, order)
    cosine = _joined(look.cosines_of(each) for look, each in found)[order] if with_vectors else None
    return Candidates(
        columns={name: values[order] for name, values in columns.items()},
        lexical=_joined(look.lexical_of(each) for look, each in found)[order],
        cosine=cosine,
        embedded=_joined(look.embedded(each) for look, each in found)[order].astype(bool),
        earlier=earlier,
        later=later,
    )


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    found = list(parts)
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.empty(0)


def _links(found: Sequence[tuple[_Look, np.ndarray]], order: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of each candidate's neighbours among the candidates, in the order that they come in."""
    if all(not len(look.state.split) for look, _ in found):
        sides = [_joined(_within(found, name)) for name in ("earlier", "later")]
    else:
        sides = [np.array(side, "i8") for side in _across(found)]
    if isinstance(order, slice):
        return sides[0].astype("i8"), sides[1].astype("i8")
    # -1 stands for the one beyond the end, and stays.
    new = np.append(np.empty(len(order), "i8"), -1)
    new[order] = np.arange(len(order))
    earlier, later = (new[side.astype("i8")][order] for side in sides)
    return earlier, later


def _within(found: Sequence[tuple[_Look, np.ndarray]], name: str) -> Iterable[np.ndarray]:
    before = 0
    for look, units in found:
        wanted = getattr(look.part.block, name)[units]
        if len(units):
            places = np.minimum(units.searchsorted(wanted), len(units) - 1)
            yield np.where(units[places] == wanted, places + before, -1)
        before += len(units)


def _across(found: Sequence[tuple[_Look, np.ndarray]]) -> tuple[list[int], list[int]]:
    places: dict[tuple[int, Place], int] = {}
    for look, units in found:
        for unit in units.tolist():
            places[id(look.state), (look.number, unit)] = len(places)
    sides: tuple[list[int], list[int]] = ([], [])
    for look, units in found:
        for side, wanted in zip(sides, neighbours(look.state, look.number, units), strict=True):
            side += [-1 if place is None else places.get((id(look.state), place), -1) for place in wanted]
    return sides
