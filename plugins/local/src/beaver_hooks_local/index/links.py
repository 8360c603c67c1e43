"""The neighbours of units in their sessions, across all blocks of an index."""

from collections.abc import Sequence

import numpy as np

from beaver_hooks_local.index.parts import Part, Place, Sides, State

FAR = 64
"""Units of a session that are looked at in one block, before and after the one whose neighbours are wanted."""

MANY = 2_048
"""Units of a session up to which the neighbours of all of them are found at once, and kept while nothing changes."""


def apart(state: State, number: int, units: np.ndarray) -> np.ndarray:
    """Return where among some units of a part those are whose neighbours have to be looked up.

    The others' neighbours are those that their block knows.
    """
    if not len(state.split):
        return np.empty(0, "i8")
    sessions = state.parts[number].block.columns["sessions"][units]
    places = np.minimum(state.split.searchsorted(sessions), len(state.split) - 1)
    found: np.ndarray = (state.split[places] == sessions).nonzero()[0]
    return found


def neighbours(state: State, number: int, unit: int) -> tuple[Place | None, Place | None]:
    """Return the units before and after one whose session is in several blocks, or has stale units."""
    session = int(state.parts[number].block.columns["sessions"][unit])
    sides = state.sides.get(session)
    if sides is None:
        sides = state.sides[session] = _sides(state.parts, session)
    return sides[number, unit] if sides else _looked_up(state.parts, number, unit)


def _sides(parts: Sequence[Part], session: int) -> Sides:
    """Return the neighbours of all live units of a session; nothing for a session of too many units."""
    units = [part.block.sessions.units_of(session) for part in parts]
    if sum(map(len, units)) > MANY:
        return {}
    units = [each if part.stale is None else each[~part.stale[each]] for part, each in zip(parts, units, strict=True)]
    columns = (
        np.concatenate([part.block.columns[name][each] for part, each in zip(parts, units, strict=True)])
        for name in ("passages", "ids", "created")
    )
    places = [(number, unit) for number, each in enumerate(units) for unit in each.tolist()]
    ordered = [places[place] for place in np.lexsort(tuple(columns)).tolist()]
    return dict(zip(ordered, zip([None, *ordered], [*ordered[1:], None], strict=False), strict=True))


def _looked_up(parts: Sequence[Part], number: int, unit: int) -> tuple[Place | None, Place | None]:
    """Return the neighbours of a unit among those that were said about then."""
    key = _key(parts[number], unit)
    session = parts[number].block.columns["sessions"][unit]
    before, after = [], []
    for other, part in enumerate(parts):
        for near in _near(part, session, key[0]):
            at = _key(part, near)
            if at < key:
                before.append((at, (other, near)))
            elif at > key:
                after.append((at, (other, near)))
    return (max(before)[1] if before else None), (min(after)[1] if after else None)


def _near(part: Part, session: np.uint64, created: float) -> list[int]:
    """Return live units of a session around a moment."""
    sessions = part.block.sessions
    place = sessions.find(int(session))
    if place < 0:
        return []
    units = sessions.units[sessions.of(place)]
    if len(units) > 2 * FAR:
        middle = int(part.block.columns["created"][units].searchsorted(created))
        units = units[max(0, middle - FAR) : middle + FAR]
    found: list[int] = (units if part.stale is None else units[~part.stale[units]]).tolist()
    return found


def _key(part: Part, unit: int) -> tuple[float, int, int]:
    columns = part.block.columns
    return float(columns["created"][unit]), int(columns["ids"][unit]), int(columns["passages"][unit])
