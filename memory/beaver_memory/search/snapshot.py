"""Immutable states of an index, and the changes from one to the next. Pure, except that vectors are set in place."""

from collections.abc import Sequence
from zlib import crc32

import attrs
import numpy as np

from beaver_memory.search import sessions
from beaver_memory.search import vectors as vectors_of
from beaver_memory.search.block import Block
from beaver_memory.search.block_builder import build, newest
from beaver_memory.search.block_merge import merge
from beaver_memory.search.lexical import Searched
from beaver_memory.search.vectors import Vectors
from beaver_memory.store.protocol import IndexRow, VectorRow

TAIL = 64
"""Units up to which the newest block is built anew with each change."""

GROWTH = 4
"""The ratio of sizes from which on a block is not merged with the one before it."""

MARKS = 16
"""The newest changes that are remembered, to detect another history of the same store."""


@attrs.frozen(kw_only=True)
class Model:
    """The model of the vectors in an index."""

    key: str
    dimensions: int


@attrs.frozen(kw_only=True, eq=False)
class Part(Searched):
    """A block with its stale units and its vectors.

    Attributes:
        vectors: the vectors of its units by the current model; `None` without one.
    """

    vectors: Vectors | None = None

    @property
    def seen(self) -> np.ndarray | None:
        """Mask of the units that are not stale; `None` for all of them."""
        return None if self.stale is None else ~self.stale


Mark = tuple[int, int, float]
"""A version, its memory, and a value derived from the content."""


Place = tuple[int, int]
"""The number of a part, and a unit of it."""

Sides = dict[Place, tuple[Place | None, Place | None]]
"""The units before and after others."""


@attrs.frozen(kw_only=True, eq=False)
class IndexState:
    """The state that a search reads: it stays as it is while the index changes.

    Attributes:
        parts: the blocks, the newest last.
        version: the version up to which it has the changes of the store.
        vector_version: the same for vectors.
        tail: the rows of the newest block, while it is still small.
        split: sessions whose units are in several blocks, or stale in one, sorted; their neighbours are looked up.
        marks, vector_marks: the newest changes.
        changes: how many changes of memories and vectors it has had since it was built or loaded.
        sides, units: caches of the neighbours in split sessions, and of their live units in each part.
    """

    parts: tuple[Part, ...] = ()
    version: int = 0
    vector_version: int = 0
    tail: tuple[IndexRow, ...] = ()
    split: np.ndarray = attrs.field(factory=lambda: np.empty(0, "u8"))
    marks: tuple[Mark, ...] = ()
    vector_marks: tuple[Mark, ...] = ()
    changes: int = 0
    sides: dict[int, Sides] = attrs.field(factory=dict, init=False, repr=False)
    units: dict[Place, np.ndarray] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def live(self) -> int:
        """The number of units that are not stale."""
        return sum(part.live for part in self.parts)

    @property
    def memories(self) -> int:
        """The number of memories that are not forgotten."""
        return sum(_memories(part) for part in self.parts)


def part_of(block: Block, stale: np.ndarray | None = None, vectors: Vectors | None = None) -> Part:
    """Return a block with its stale units and vectors."""
    lengths = block.columns["lengths"]
    if stale is None:
        return Part(block=block, stale=None, live=block.size, length=int(lengths.sum(dtype="i8")), vectors=vectors)
    seen = ~stale
    live, length = int(np.count_nonzero(seen)), int(lengths[seen].sum(dtype="i8"))
    return Part(block=block, stale=stale, live=live, length=length, vectors=vectors)


def with_rows(state: IndexState, rows: Sequence[IndexRow], model: Model | None) -> IndexState:
    """Return a state with changes: old units are stale, new ones in the newest block."""
    fresh = newest(rows)
    ids = np.array(sorted(fresh), "i8")
    older = state.parts[:-1] if state.tail else state.parts
    parts = tuple(without(part, ids) for part in older)
    tail = {row.id: row for row in state.tail} | fresh
    live = [row for row in tail.values() if not row.gone]
    marks = tuple((row.version, row.id, row.updated) for row in rows[-MARKS:])
    changed = attrs.evolve(state, version=rows[-1].version, marks=(*state.marks, *marks)[-MARKS:], tail=())
    changed = attrs.evolve(changed, changes=state.changes + len(rows))
    if live:
        block = build(live)
        vectors = None if model is None else _carried(state.parts, block, model)
        parts = (*parts, part_of(block, None, vectors))
        changed = attrs.evolve(changed, tail=tuple(live) if block.size <= TAIL else ())
    changed = attrs.evolve(changed, parts=parts)
    return attrs.evolve(changed, split=sessions.after(changed.parts, state.parts, state.split))


def without(part: Part, ids: np.ndarray) -> Part:
    """Return a part in which the units of some memories are stale."""
    all_ids = part.block.columns["ids"]
    if not len(all_ids) or ids[-1] < all_ids[0] or ids[0] > all_ids[-1]:
        return part
    firsts, ends = all_ids.searchsorted(ids), all_ids.searchsorted(ids, side="right")
    if not (ends > firsts).any():
        return part
    stale = np.zeros(part.block.size, bool) if part.stale is None else part.stale.copy()
    units = np.concatenate([np.arange(*each) for each in zip(firsts.tolist(), ends.tolist(), strict=True)])
    newly = units[~stale[units]]
    stale[newly] = True
    length = part.length - int(part.block.columns["lengths"][newly].sum(dtype="i8"))
    return attrs.evolve(part, stale=stale, live=part.live - len(newly), length=length)


def with_vectors(state: IndexState, rows: Sequence[VectorRow]) -> IndexState:
    """Write vectors to their memories' live units, and return the state that has them."""
    fresh = {row.id: row.data for row in rows}
    ids = np.array(sorted(fresh), "i8")
    parts = tuple(place(part, ids, fresh) for part in state.parts)
    marks = tuple(map(vector_mark, rows[-MARKS:]))
    return attrs.evolve(
        state,
        parts=parts,
        vector_version=rows[-1].version,
        vector_marks=(*state.vector_marks, *marks)[-MARKS:],
        changes=state.changes + len(rows),
    )


def vector_mark(row: VectorRow) -> Mark:
    """Return the mark of a vector."""
    return row.version, row.id, float(crc32(row.data))


def place(part: Part, ids: np.ndarray, data: dict[int, bytes]) -> Part:
    """Write vectors to their memories' units in a part; return the part that has them."""
    if part.vectors is None or not part.block.size:
        return part
    all_ids = part.block.columns["ids"]
    places = np.minimum(all_ids.searchsorted(ids), len(all_ids) - 1)
    here = all_ids[places] == ids
    if part.stale is not None:
        # All units of a memory are stale together.
        here &= ~part.stale[places]
    if not here.any():
        return part
    chosen, vectors = ids[here], vectors_of.writable(part.vectors)
    vectors_of.place(vectors, part.block, chosen, [data[id_] for id_ in chosen.tolist()])
    return part if vectors is part.vectors else attrs.evolve(part, vectors=vectors)


def for_model(state: IndexState, model: Model | None) -> IndexState:
    """Return a state with room for a model's vectors."""
    if model is None:
        return state
    parts = tuple(_with_room(part, model) for part in state.parts)
    return attrs.evolve(state, parts=parts)


def stripped(state: IndexState) -> IndexState:
    """Return a state without any vectors."""
    parts = tuple(attrs.evolve(part, vectors=None) for part in state.parts)
    return attrs.evolve(state, parts=parts, vector_version=0, vector_marks=())


def mergeable(state: IndexState, most: float) -> int:
    """Return how many of the newest blocks to merge: each block should be several times larger than the next.

    Args:
        state: the state.
        most: the most units that the result may have.
    """
    if state.tail:
        return 0
    count, size = 0, 0
    for newer, part in enumerate(reversed(state.parts)):
        if size + part.live > most:
            break
        # A block that is large enough does not prevent a merge of those before it.
        if newer and part.live < GROWTH * size:
            count = newer + 1
        size += part.live
    return count


def merged(state: IndexState, count: int, model: Model | None) -> IndexState:
    """Return a state whose newest blocks are merged."""
    if not count:
        return state
    parts = (*state.parts[:-count], joined(state.parts[-count:], model))
    return with_parts(state, tuple(part for part in parts if part.live))


def with_parts(state: IndexState, parts: tuple[Part, ...]) -> IndexState:
    """Return a state with other blocks of the same memories."""
    changed = attrs.evolve(state, parts=parts)
    return attrs.evolve(changed, split=sessions.still(changed.parts, state.split))


def without_stale(state: IndexState, model: Model | None) -> IndexState:
    """Return a state of the same memories without stale units, and so without any forgotten content."""
    marks = tuple(mark for mark in state.vector_marks if any(_is_live(part, mark[1]) for part in state.parts))
    if marks != state.vector_marks:
        state = attrs.evolve(state, vector_marks=marks)
    if all(part.stale is None for part in state.parts):
        return state
    parts = (part if part.stale is None else joined([part], model) for part in state.parts)
    return with_parts(state, tuple(part for part in parts if part.live))


def newly_stale(before: Sequence[Part], now: Sequence[Part]) -> np.ndarray:
    """Return the memories whose units have become stale since."""
    found = [np.empty(0, "i8")]
    for old, new in zip(before, now, strict=True):
        if new.stale is not None:
            newly = new.stale if old.stale is None else new.stale & ~old.stale
            found.append(new.block.columns["ids"][newly])
    return np.unique(np.concatenate(found))


def joined(parts: Sequence[Part], model: Model | None) -> Part:
    """Return several parts merged into one."""
    block = merge([part.block for part in parts], [part.seen for part in parts])
    return part_of(block, None, None if model is None else _carried(parts, block, model))


def _carried(parts: Sequence[Part], block: Block, model: Model) -> Vectors:
    """Return the vectors that a new block's units had in other blocks: a memory that is pinned keeps its vector."""
    vectors = vectors_of.empty(block.size, model.dimensions)
    for part in parts:
        if part.vectors is not None and part.vectors.dimensions == model.dimensions:
            vectors_of.moved(part.block, part.vectors, part.seen, block, vectors)
    return vectors


def _with_room(part: Part, model: Model) -> Part:
    if part.vectors is not None and part.vectors.dimensions == model.dimensions:
        return part
    return attrs.evolve(part, vectors=vectors_of.empty(part.block.size, model.dimensions))


def _is_live(part: Part, id_: int) -> bool:
    ids = part.block.columns["ids"]
    unit = int(ids.searchsorted(id_))
    return unit < len(ids) and int(ids[unit]) == id_ and (part.stale is None or not part.stale[unit])


def _memories(part: Part) -> int:
    firsts = part.block.columns["passages"] == 0
    return int(np.count_nonzero(firsts if part.stale is None else firsts & ~part.stale))
