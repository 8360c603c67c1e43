"""Finds the neighbours of units in their sessions, across all blocks of an index."""

from collections.abc import Sequence

import numpy as np

from beaver_memory.search.block import NONE, Block, sides
from beaver_memory.search.masks import VisibleRows
from beaver_memory.search.snapshot import IndexState, Place, Sides

FAR = 64
"""Units of a session that are read in one block, before and after the one whose neighbours are wanted."""

MANY = 2_048
"""Units of a session up to which the neighbours of all are found at once, and kept until the index changes."""

STEPS = 16
"""Hidden units in a row that are skipped one by one; beyond that, the whole block is linked anew."""


class Links:
    """Finds the neighbours of visible units. Hidden units are skipped, as if they did not exist.

    Args:
        state: the index.
        seen: the visible units of each part.
    """

    def __init__(self, state: IndexState, seen: Sequence[VisibleRows]) -> None:
        self.state = state
        self.seen = seen
        hides = any(each.hides for each in seen)
        self._anew: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._sides: dict[int, Sides] = {} if hides else state.sides
        self._units: dict[Place, np.ndarray] = {} if hides else state.units

    def beside(self, number: int, units: np.ndarray) -> np.ndarray:
        """Return the units before and after units of a part, as their block links them: `NONE` if there is none."""
        block, stale = self.seen[number].block, self.seen[number].stale
        links = self._anew.get(number, (block.earlier, block.later))
        found = np.array([link[units] for link in links], "i8")
        if stale is None or not self.seen[number].hides:
            return found
        if all(_passed(*each, stale) for each in zip(links, found, strict=True)):
            return found
        self._anew[number] = _linked_anew(block, stale)
        return self.beside(number, units)

    def apart(self, number: int, units: np.ndarray) -> np.ndarray:
        """Return the places of those units of a part whose neighbours have to be looked up.

        The links of the block are right for the other units.
        """
        split = self.state.split
        if not len(split):
            return np.empty(0, "i8")
        sessions = self.seen[number].block.columns["sessions"][units]
        places = np.minimum(split.searchsorted(sessions), len(split) - 1)
        found: np.ndarray = (split[places] == sessions).nonzero()[0]
        return found

    def neighbours(self, number: int, unit: int) -> tuple[Place | None, Place | None]:
        """Return the units before and after a unit whose session is in several blocks, or has stale units."""
        session = int(self.seen[number].block.columns["sessions"][unit])
        known = self._sides.get(session)
        if known is None:
            known = self._sides[session] = self._sides_in(session)
        return known[number, unit] if known else self._looked_up(session, number, unit)

    def _sides_in(self, session: int) -> Sides:
        """Return the neighbours of all units of a session; an empty result for a session of too many units."""
        if sum(len(each.block.sessions.units_of(session)) for each in self.seen) > MANY:
            return {}
        units = [self._units_of(number, session) for number in range(len(self.seen))]
        columns = (
            np.concatenate([each.block.columns[name][which] for each, which in zip(self.seen, units, strict=True)])
            for name in ("passages", "ids", "created")
        )
        places = [(number, unit) for number, each in enumerate(units) for unit in each.tolist()]
        ordered = [places[place] for place in np.lexsort(tuple(columns)).tolist()]
        return dict(zip(ordered, zip([None, *ordered], [*ordered[1:], None], strict=False), strict=True))

    def _looked_up(self, session: int, number: int, unit: int) -> tuple[Place | None, Place | None]:
        """Return the neighbours of a unit among units that were said at about the same time."""
        key = self._key(number, unit)
        before, after = [], []
        for other in range(len(self.seen)):
            for near in self._near(other, session, key[0]):
                at = self._key(other, near)
                if at < key:
                    before.append((at, (other, near)))
                elif at > key:
                    after.append((at, (other, near)))
        return (max(before)[1] if before else None), (min(after)[1] if after else None)

    def _near(self, number: int, session: int, created: float) -> list[int]:
        """Return units of a session around a moment."""
        units = self._units_of(number, session)
        if len(units) > 2 * FAR:
            middle = int(self.seen[number].block.columns["created"][units].searchsorted(created))
            units = units[max(0, middle - FAR) : middle + FAR]
        found: list[int] = units.tolist()
        return found

    def _units_of(self, number: int, session: int) -> np.ndarray:
        """Return the visible units of a session, in order of time."""
        known = self._units.get((number, session))
        if known is None:
            seen = self.seen[number]
            known = seen.block.sessions.units_of(session)
            known = self._units[number, session] = known if seen.stale is None else known[~seen.stale[known]]
        return known

    def _key(self, number: int, unit: int) -> tuple[float, int, int]:
        columns = self.seen[number].block.columns
        return float(columns["created"][unit]), int(columns["ids"][unit]), int(columns["passages"][unit])


def _passed(link: np.ndarray, units: np.ndarray, stale: np.ndarray) -> bool:
    """Move links past hidden units, in place; return whether all links now lead to visible units."""
    left = np.arange(len(units))
    for _ in range(STEPS):
        left = left[units[left] != NONE]
        left = left[stale[units[left]]]
        if not len(left):
            return True
        units[left] = link[units[left]]
    return False


def _linked_anew(block: Block, stale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of all units of a block among its visible units."""
    order = block.sessions.units
    order = order[~stale[order]]
    return sides(order, block.columns["sessions"][order], block.size)
