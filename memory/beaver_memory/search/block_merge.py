"""Merges several blocks into one: the same units, in order of their memories, without stale ones."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from beaver_memory.search.block import COLUMNS, Block, Postings, compact, keys_of, linked

AT_ONCE = 2_000_000
"""Entries of postings that are moved at once; they bound the memory that merging needs beside its result."""

_UNIT_BITS = 32


def merge(blocks: Sequence[Block], keep: Sequence[np.ndarray | None]) -> Block:
    """Return one block of the units of several that `keep` selects.

    Args:
        blocks: the blocks.
        keep: for each block, a mask of the units to keep; all of them if `None`.
    """
    kept = [
        np.arange(block.size) if each is None else each.nonzero()[0] for block, each in zip(blocks, keep, strict=True)
    ]
    keys = [keys_of(block)[each] for block, each in zip(blocks, kept, strict=True)]
    order = _order(keys)
    columns = {name: _column(name, blocks, kept, order) for name in COLUMNS}
    maps = _maps(blocks, kept, order)
    sessions, earlier, later = linked(columns)
    return Block(
        columns=compact(columns),
        terms=_merged([block.terms for block in blocks], maps, is_ordered=order is None),
        labels=_merged([block.labels for block in blocks], maps, is_ordered=order is None),
        sessions=sessions, earlier=earlier, later=later,
    )  # fmt: skip


def _order(keys: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the order of the units, or `None` if one block after the other is already in order."""
    filled = [each for each in keys if len(each)]
    if all(one[-1] < other[0] for one, other in itertools.pairwise(filled)):
        return None
    return np.concatenate(filled).argsort()


def _column(name: str, blocks: Sequence[Block], kept: Sequence[np.ndarray], order: np.ndarray | None) -> np.ndarray:
    whole = np.concatenate([block.columns[name][each] for block, each in zip(blocks, kept, strict=True)])
    return whole if order is None else whole[order]


def _maps(blocks: Sequence[Block], kept: Sequence[np.ndarray], order: np.ndarray | None) -> list[np.ndarray]:
    """Return the new number of each old unit, -1 for a dropped one."""
    total = sum(map(len, kept))
    places = np.arange(total, dtype="i8")
    if order is not None:
        places = np.empty(total, "i8")
        places[order] = np.arange(total)
    maps, before = [], 0
    for block, each in zip(blocks, kept, strict=True):
        new = np.full(block.size, -1, "i8")
        new[each] = places[before : before + len(each)]
        maps.append(new)
        before += len(each)
    return maps


def _merged(parts: Sequence[Postings], maps: Sequence[np.ndarray], *, is_ordered: bool) -> Postings:
    hashes = np.unique(np.concatenate([part.hashes for part in parts]))
    where = [hashes.searchsorted(part.hashes) for part in parts]
    counts = np.zeros(len(hashes), "i8")
    for part, places, new in zip(parts, where, maps, strict=True):
        counts[places] += _kept_counts(part, new)
    starts = np.append(0, counts.cumsum())
    units = np.empty(int(starts[-1]), "u4")
    codes = np.empty(int(starts[-1]) if any(len(part.codes) for part in parts) else 0, "u2")
    cursor = starts[:-1].copy()
    for part, places, new in zip(parts, where, maps, strict=True):
        for first, last in _ranges(part):
            _move(part, slice(first, last), places[first:last], new, (units, codes, cursor))
    if not is_ordered:
        _sort(units, codes, starts)
    filled = counts > 0
    return Postings(
        hashes=hashes[filled], starts=np.append(starts[:-1][filled], starts[-1]).astype("u8"), units=units, codes=codes
    )


def _ranges(part: Postings) -> Iterator[tuple[int, int]]:
    """Yield ranges of lists that are small enough together."""
    yield from _cut(part.starts.astype("i8"))


def _cut(starts: np.ndarray) -> Iterator[tuple[int, int]]:
    first, lists = 0, len(starts) - 1
    while first < lists:
        last = int(starts.searchsorted(starts[first] + AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), lists)
        yield first, last
        first = last


def _kept_counts(part: Postings, new: np.ndarray) -> np.ndarray:
    starts = part.starts.astype("i8")
    counts: np.ndarray = starts[1:] - starts[:-1]
    if len(new) and new.min() >= 0:
        return counts
    found = [np.zeros(0, "i8")]
    for first, last in _ranges(part):
        kept = np.append(0, (new[part.units[starts[first] : starts[last]]] >= 0).cumsum())
        edges = starts[first : last + 1] - starts[first]
        found.append(kept[edges[1:]] - kept[edges[:-1]])
    return np.concatenate(found)


def _move(
    part: Postings,
    lists: slice,
    places: np.ndarray,
    new: np.ndarray,
    into: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Copy lists to their places, each behind the entries that are already there."""
    units, codes, cursor = into
    starts = part.starts.astype("i8")[lists.start : lists.stop + 1]
    entries = slice(int(starts[0]), int(starts[-1]))
    moved = new[part.units[entries]]
    which = np.arange(len(places)).repeat(starts[1:] - starts[:-1])
    kept = moved >= 0
    if not kept.all():
        moved, which = moved[kept], which[kept]
    counts = np.bincount(which, minlength=len(places))
    before = counts.cumsum() - counts
    target = (cursor[places] - before)[which] + np.arange(len(which))
    units[target] = moved
    if len(codes):
        codes[target] = part.codes[entries][kept]
    cursor[places] += counts


def _sort(units: np.ndarray, codes: np.ndarray, starts: np.ndarray) -> None:
    """Sort each list."""
    for first, last in _cut(starts):
        entries = slice(int(starts[first]), int(starts[last]))
        which = np.arange(last - first, dtype="u8").repeat(starts[first + 1 : last + 1] - starts[first:last])
        order = ((which << np.uint64(_UNIT_BITS)) | units[entries].astype("u8")).argsort()
        units[entries] = units[entries][order]
        if len(codes):
            codes[entries] = codes[entries][order]
