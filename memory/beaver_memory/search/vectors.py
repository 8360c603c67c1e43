"""The vectors of a block's units, in bytes: searched by scanning, exactly if few, and in two stages if many.

Vectors have length 1. One scale for all of them keeps products comparable: the expected size of a component is 1 /
sqrt(dimensions), and larger ones are cut off at six times that size.
"""

import math
import os
import weakref
from collections.abc import Sequence
from typing import BinaryIO

import attrs
import numpy as np
import simsimd

from beaver_memory.search.block import Block
from beaver_memory.search.top_k import TopK, best

LARGE = 60_000
"""Units from which on a search compares the signs of the components first."""

STAYING = 200_000
"""Units from which on the components stay in the file: a search reads few of them."""

STEP = 65_536
"""Units that are compared at once: their results fit into the cache."""

RESCORED = 2_000
"""Units that are compared in full after the comparison of signs, unless more are wanted."""

_WIDEST = 6.0
_MOST_OF_THEM = 4
"""If at least one in so many units is wanted, all are compared: picking them out costs more."""


class FileRows:
    """A two-dimensional array in a file, which takes no memory. Read-only; may be used from several threads.

    Args:
        file: the file; it may be closed, moved or deleted afterwards.
        start: the place of the array in the file.
        shape: the number of rows and of bytes in a row.
    """

    def __init__(self, file: BinaryIO, start: int, shape: tuple[int, int]) -> None:
        self._descriptor = os.dup(file.fileno())
        self._start = start
        self.shape = shape
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        """Return the rows at some places."""
        width, start, descriptor, read = self.shape[1], self._start, self._descriptor, os.pread
        found = b"".join([read(descriptor, width, start + width * place) for place in places.tolist()])
        return np.frombuffer(found, "i1").reshape(-1, width)

    def whole(self) -> np.ndarray:
        """Return all rows in a writable array."""
        rows = np.empty(self.shape, "i1")
        view, place = rows.reshape(-1).view("u1"), 0
        while place < view.size:
            count = os.preadv(self._descriptor, [view[place:].data], self._start + place)
            if not count:
                raise OSError("an index file was cut off while it was in use")
            place += count
        return rows


@attrs.frozen(kw_only=True, eq=False)
class Vectors:
    """The vectors of a block's units, by unit.

    Attributes:
        data: components, in steps; one row for each unit. Those of many units may stay in a file.
        signs: one bit for each component, 64 of them in a word; one column for each unit.
        present: which units have a vector.
    """

    data: np.ndarray | FileRows
    signs: np.ndarray
    present: np.ndarray

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return int(self.data.shape[1])


def empty(size: int, dimensions: int) -> Vectors:
    """Return the vectors of units that have none."""
    return Vectors(
        data=np.zeros((size, dimensions), "i1"),
        signs=np.zeros(((dimensions + 63) // 64, size), "u8"),
        present=np.zeros(size, bool),
    )


def writable(vectors: Vectors) -> Vectors:
    """Return writable vectors: the same ones, unless they stay in a file."""
    if isinstance(vectors.data, FileRows):
        return Vectors(data=vectors.data.whole(), signs=vectors.signs, present=vectors.present)
    return vectors


def place(vectors: Vectors, block: Block, ids: np.ndarray, packed: Sequence[bytes]) -> None:
    """Write the vectors of some memories to their units.

    Args:
        vectors: the vectors to write to.
        block: the block of their units.
        ids: memories that have units in the block, each once.
        packed: the vectors of each memory's passages: float16, little-endian.
    """
    all_ids = block.columns["ids"]
    firsts, ends = all_ids.searchsorted(ids), all_ids.searchsorted(ids, side="right")
    size = 2 * vectors.dimensions
    # A vector of an earlier text of its memory may have another number of passages.
    fits = [end - first == len(each) / size for first, end, each in zip(firsts, ends, packed, strict=True)]
    units = [np.arange(first, end) for first, end, good in zip(firsts, ends, fits, strict=True) if good]
    if not units:
        return
    found = np.frombuffer(b"".join(each for each, good in zip(packed, fits, strict=True) if good), "<f2")
    values = found.reshape(-1, vectors.dimensions).astype("f4")
    where = np.concatenate(units)
    finite = np.isfinite(values).all(axis=1)
    where, values = where[finite], values[finite]
    if isinstance(vectors.data, FileRows):
        raise TypeError("these vectors stay in a file")
    vectors.data[where] = in_steps(values)
    vectors.signs[:, where] = signs_of(values)
    vectors.present[where] = True


def moved(old: Block, vectors: Vectors, seen: np.ndarray | None, new: Block, into: Vectors) -> None:
    """Copy the vectors of units to the same passage of the same memory in another block.

    Args:
        old: the block of the vectors.
        vectors: the vectors to copy.
        seen: the units to copy; all of them if `None`.
        new: the block that gets them.
        into: the vectors of that block.
    """
    if not vectors.present.any() or isinstance(into.data, FileRows):
        return
    there, here = old.columns, new.columns
    places = there["ids"].searchsorted(here["ids"]) + here["passages"]
    to = (places < old.size).nonzero()[0]
    source = places[to]
    # A vector does not fit a text that has changed.
    same = vectors.present[source]
    for name in ("ids", "passages", "digests"):
        same = same & (there[name][source] == here[name][to])
    if seen is not None:
        same &= seen[source]
    to, source = to[same], source[same]
    for first in range(0, len(to), STEP):
        part = slice(first, first + STEP)
        into.data[to[part]] = vectors.data[source[part]]
        into.signs[:, to[part]] = vectors.signs[:, source[part]]
    into.present[to] = True


def in_steps(values: np.ndarray) -> np.ndarray:
    """Return components as steps of the scale."""
    return np.clip(np.rint(values * np.float32(_steps(values.shape[-1]))), -127, 127).astype("i1")


def signs_of(values: np.ndarray) -> np.ndarray:
    """Return the signs of vectors in words, one column for each."""
    bits = np.packbits(values > 0, axis=1)
    whole = np.zeros((len(values), (values.shape[1] + 63) // 64 * 8), "u1")
    whole[:, : bits.shape[1]] = bits
    return whole.view("u8").T


def search(vectors: Vectors, query: np.ndarray, *, allowed: np.ndarray | None, limit: int) -> TopK:
    """Return the units nearest to a query; of equal ones the newest."""
    seen = vectors.present if allowed is None else vectors.present & allowed
    count = int(np.count_nonzero(seen))
    if not count:
        return TopK(units=np.empty(0, "i8"), scores=np.empty(0))
    if len(seen) > LARGE or isinstance(vectors.data, FileRows):
        return _nearest_of(vectors, query, _nearest_by_sign(vectors, query, seen, max(RESCORED, limit)), limit)
    if count * _MOST_OF_THEM < len(seen):
        return _nearest_of(vectors, query, seen.nonzero()[0], limit)
    every = _cosines(vectors.data, query)
    # A hidden unit is farther than any vector can be.
    units = best(every if count == len(seen) else np.where(seen, every, -np.inf), min(limit, count))
    return TopK(units=units, scores=every[units], every=every)


def score(vectors: Vectors, query: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return the cosines of given units, 0 for those without a vector."""
    return np.where(vectors.present[units], _cosines(vectors.data[units], query), 0.0)


def _nearest_of(vectors: Vectors, query: np.ndarray, units: np.ndarray, limit: int) -> TopK:
    cosines = _cosines(vectors.data[units], query)
    places = best(cosines, limit)
    return TopK(units=units[places], scores=cosines[places])


def _steps(dimensions: int) -> float:
    """Return the number of steps in a length of 1."""
    return 127.0 * math.sqrt(dimensions) / _WIDEST


def _cosines(data: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the products with a query; they are cosines, as vectors have length 1."""
    if not len(data):
        return np.zeros(0)
    wanted = in_steps(query.astype("f4").reshape(1, -1))
    products: np.ndarray = np.asarray(simsimd.cdist(wanted, data, metric="dot"))[0]
    products /= _steps(data.shape[1]) ** 2
    return products


def _nearest_by_sign(vectors: Vectors, query: np.ndarray, seen: np.ndarray, most: int) -> np.ndarray:
    """Return the units whose signs differ least: in steps, so that far units are never compared again."""
    wanted = signs_of(query.astype("f4").reshape(1, -1))[:, 0]
    units, distances, edge = [], [], vectors.dimensions
    for first in range(0, len(seen), STEP):
        part = slice(first, min(first + STEP, len(seen)))
        apart = np.zeros(part.stop - part.start, "u2")
        for word, row in zip(wanted, vectors.signs, strict=True):
            apart += np.bitwise_count(row[part] ^ word)
        near = ((apart <= edge) & seen[part]).nonzero()[0]
        if len(near) > most:
            edge = min(edge, int(np.partition(apart[near], most)[most]))
            near = near[apart[near] <= edge]
        units.append(near + first)
        distances.append(apart[near])
    found, apart = np.concatenate(units), np.concatenate(distances)
    if len(found) > most:
        found = found[np.argpartition(apart, most)[:most]]
    found.sort()
    return found
