"""Finds split sessions: their units are in several blocks, or stale in one. Pure.

A block links the neighbours of its units; neighbours in a split session have to be looked up.
"""

from collections.abc import Sequence

import numpy as np

from beaver_memory.search.lexical import Searched

FEW = 256
"""Sessions up to which each is checked by itself."""


def after(parts: Sequence[Searched], before: Sequence[Searched], split: np.ndarray) -> np.ndarray:
    """Return the split sessions after a change: the earlier ones, and new ones in the changed parts."""
    known = {id(part.block): part for part in before}
    found = [np.empty(0, "u8")]
    for part in parts:
        old, all_sessions = known.get(id(part.block)), part.block.columns["sessions"]
        if old is None:
            found.append(part.block.sessions.hashes)
        elif part.stale is not None and old.stale is not part.stale:
            found.append(all_sessions[part.stale if old.stale is None else part.stale & ~old.stale])
    suspects = np.unique(np.concatenate(found))
    new = suspects[~_within(suspects, split) & (suspects != 0)]
    return np.union1d(split, still(parts, new))


def still(parts: Sequence[Searched], suspects: np.ndarray) -> np.ndarray:
    """Return the sessions that are in several blocks, or have stale units."""
    blocks, stale = np.zeros(len(suspects), "i8"), np.zeros(len(suspects), bool)
    for part in parts:
        there = _within(suspects, part.block.sessions.hashes)
        blocks += there
        if part.stale is not None:
            which = there.nonzero()[0]
            stale[which] |= _touched(part, part.stale, suspects[which])
    return suspects[(blocks > 1) | stale]


def _touched(part: Searched, stale: np.ndarray, sessions: np.ndarray) -> np.ndarray:
    """Return the sessions of a part that have stale units."""
    lists = part.block.sessions
    places = lists.hashes.searchsorted(sessions)
    if len(sessions) <= FEW:
        return np.array([bool(stale[lists.units[lists.of(int(place))]].any()) for place in places], bool)
    gone = np.append(0, stale[lists.units].cumsum())
    first, end = (lists.starts[places + more].astype("i8") for more in (0, 1))
    touched: np.ndarray = gone[end] > gone[first]
    return touched


def _within(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return which values occur in a sorted array."""
    if not len(among):
        return np.zeros(len(values), bool)
    found: np.ndarray = among[np.minimum(among.searchsorted(values), len(among) - 1)] == values
    return found
