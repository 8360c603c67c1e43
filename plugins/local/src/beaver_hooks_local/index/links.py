"""The neighbours of units in their sessions, across all blocks of an index."""

from collections.abc import Sequence

import numpy as np

from beaver_hooks_local.index.block import NONE
from beaver_hooks_local.index.parts import Part, State

FAR = 64
"""Units of a session that are looked at in one block, before and after the one whose neighbours are wanted."""

Place = tuple[int, int]
"""The number of a part, and a unit of it."""


def neighbours(state: State, number: int, units: np.ndarray) -> tuple[list[Place | None], list[Place | None]]:
    """Return the units before and after given units of a part, in their sessions."""
    block = state.parts[number].block
    earlier = [_place(number, unit) for unit in block.earlier[units].tolist()]
    later = [_place(number, unit) for unit in block.later[units].tolist()]
    if len(state.split):
        sessions = block.columns["sessions"][units]
        places = np.minimum(state.split.searchsorted(sessions), len(state.split) - 1)
        for which in (state.split[places] == sessions).nonzero()[0].tolist():
            earlier[which], later[which] = _looked_up(state.parts, number, int(units[which]))
    return earlier, later


def _place(number: int, unit: int) -> Place | None:
    return None if unit == NONE else (number, unit)


def _looked_up(parts: Sequence[Part], number: int, unit: int) -> tuple[Place | None, Place | None]:
    """Return the neighbours of a unit whose session is in several blocks, or has stale units."""
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
