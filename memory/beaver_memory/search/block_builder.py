"""Builds a block from rows of the store: few steps for each row, the rest for all rows at once."""

import struct
from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

import attrs
import numpy as np

from beaver_memory.search.block import (
    COLUMNS,
    LENGTH_BITS,
    LONGEST,
    MOST_COUNT,
    SCOPES,
    STORES,
    Block,
    Postings,
    compact,
    linked,
)
from beaver_memory.search.terms import hash_of, label_hashes, name_hash, unpack
from beaver_memory.store.protocol import IndexRow

_ONE_PASSAGE = struct.Struct("<HIHH")
_ENTRY = 9
"""Bytes of one term of a passage."""

_UNIT_BITS = 32
_COLUMN_LABELS = ("store:", "scope:", "project:", "agent:", "session:")
_OF_ROWS: dict[str, Callable[[IndexRow], float]] = {
    "ids": lambda row: row.id,
    "created": lambda row: row.created, "updated": lambda row: row.updated, "expires": lambda row: row.expires,
    "valid_from": lambda row: row.valid_from, "valid_until": lambda row: row.valid_until,
    "mentions": lambda row: row.mentions, "importance": lambda row: row.importance,
    "confidence": lambda row: row.confidence, "pinned": lambda row: row.pinned,
}  # fmt: skip


def build(rows: Iterable[IndexRow]) -> Block:
    """Return a block of the rows that are not gone, each memory once."""
    ordered = sorted(rows, key=lambda row: row.id)
    texts, marks = _Texts(), _Marks()
    for row in ordered:
        texts.add(row.terms)
    for row in ordered:
        marks.add(row)
    return _block(ordered, texts, marks)


def newest(rows: Iterable[IndexRow]) -> dict[int, IndexRow]:
    """Return each memory's newest row, by id."""
    found: dict[int, IndexRow] = {}
    for row in rows:
        if row.id not in found or found[row.id].version < row.version:
            found[row.id] = row
    return found


def postings(hashes: np.ndarray, units: np.ndarray, codes: np.ndarray | None) -> Postings:
    """Return postings of entries in any order; no entry may occur twice."""
    order = hashes.argsort()
    hashes = hashes[order]
    begins = np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]
    starts = np.flatnonzero(begins)
    # List, unit and code in one number: one sort orders all three.
    entries = (begins.cumsum().astype("u8") - 1) << np.uint64(_UNIT_BITS)
    entries |= units[order].astype("u8")
    if codes is None:
        entries.sort()
    else:
        inner = entries.argsort()
        entries, codes = entries[inner], codes[order][inner]
    return Postings(
        hashes=hashes[starts].astype("u8"),
        starts=np.append(starts, len(units)).astype("u8"),
        units=(entries & np.uint64((1 << _UNIT_BITS) - 1)).astype("u4"),
        codes=np.empty(0, "u2") if codes is None else codes.astype("u2"),
    )


class _Texts:
    """Collects the terms of memories, passage by passage."""

    def __init__(self) -> None:
        self.passages: list[int] = []
        self.sizes: list[int] = []
        self.lengths: list[int] = []
        self.traits: list[int] = []
        self.digests: list[int] = []
        self.hashes: list[bytes] = []
        self.counts: list[bytes] = []

    def add(self, packed: bytes) -> None:
        """Add the terms of a memory."""
        if len(packed) >= _ONE_PASSAGE.size:
            number, size, length, traits = _ONE_PASSAGE.unpack_from(packed)
            if number == 1 and len(packed) == _ONE_PASSAGE.size + _ENTRY * size:
                end = _ONE_PASSAGE.size + 8 * size
                self.passages.append(1)
                self._passage((size, length, traits), packed[_ONE_PASSAGE.size : end], packed[end:])
                return
        self._each(packed)

    def _each(self, packed: bytes) -> None:
        try:
            found = unpack(packed)
        except ValueError:
            found = []
        self.passages.append(max(1, len(found)))
        for each in found:
            self._passage((len(each.hashes), each.length, each.traits), each.hashes.tobytes(), each.counts.tobytes())
        if not found:
            # Unreadable terms count as no terms; a search finds the memory by its vector and beside others.
            self._passage((0, 0, 0), b"", b"")

    def _passage(self, head: tuple[int, int, int], hashes: bytes, counts: bytes) -> None:
        size, length, traits = head
        self.sizes.append(size)
        self.lengths.append(length)
        self.traits.append(traits)
        self.digests.append(crc32(counts, crc32(hashes)))
        self.hashes.append(hashes)
        self.counts.append(counts)


class _Marks:
    """Collects the labels and other filtered values of memories."""

    def __init__(self) -> None:
        self.columns: dict[str, list[int]] = {"stores": [], "scopes": [], "projects": [], "agents": []}
        self.sessions: list[int] = []
        self.speakers: list[int] = []
        self.labels: list[list[int]] = []
        self._hashes: dict[str, int] = {"": 0}
        self._names: dict[str, int] = {}

    def add(self, row: IndexRow) -> None:
        """Add the row of a memory."""
        others, found = [], {}
        for label in row.labels:
            if label.startswith(_COLUMN_LABELS):
                name, _, value = label.partition(":")
                found[name] = value
            else:
                others.append(self._label(label))
        self.columns["stores"].append(STORES.index(found.get("store", STORES[0])))
        self.columns["scopes"].append(SCOPES.index(found.get("scope", SCOPES[0])))
        self.columns["projects"].append(self._hash(found.get("project", "")))
        self.columns["agents"].append(self._hash(found.get("agent", "")))
        self.sessions.append(self._hash(row.session))
        self.speakers.append(self._name(row.speaker))
        self.labels.append(others)

    def _hash(self, text: str) -> int:
        known = self._hashes.get(text)
        if known is None:
            known = self._hashes[text] = hash_of(text)
        return known

    def _label(self, label: str) -> int:
        known = self._names.get(label)
        if known is None:
            known = self._names[label] = label_hashes([label])[0]
        return known

    def _name(self, name: str) -> int:
        key = "\0" + name
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = name_hash(name)
        return known


@attrs.frozen(kw_only=True, eq=False)
class _Shape:
    """The number of passages and the first unit of each memory."""

    passages: np.ndarray

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of memories, repeated for each of their units."""
        return values if len(values) == int(self.passages.sum()) else values.repeat(self.passages)

    def numbers(self) -> np.ndarray:
        """Return the number of each unit within its memory."""
        firsts = self.passages.cumsum() - self.passages
        numbers: np.ndarray = np.arange(int(self.passages.sum())) - firsts.repeat(self.passages)
        return numbers


def _block(rows: Sequence[IndexRow], texts: _Texts, marks: _Marks) -> Block:
    shape = _Shape(passages=np.array(texts.passages, "i8"))
    columns = {
        name: shape.spread(np.fromiter(map(read, rows), COLUMNS[name], len(rows))) for name, read in _OF_ROWS.items()
    }
    for name, values in {**marks.columns, "sessions": marks.sessions, "speakers": marks.speakers}.items():
        columns[name] = shape.spread(np.array(values, COLUMNS[name]))
    columns["passages"] = shape.numbers().astype("u2")
    columns["lengths"] = np.clip(np.array(texts.lengths, "i8"), 1, LONGEST).astype("u2")
    columns["traits"] = np.array(texts.traits, "u2")
    columns["digests"] = np.array(texts.digests, "u4")
    sessions, earlier, later = linked(columns)
    return Block(
        columns=compact(columns), terms=_terms(texts, columns["lengths"]), labels=_labels(marks, shape),
        sessions=sessions, earlier=earlier, later=later,
    )  # fmt: skip


def _terms(texts: _Texts, lengths: np.ndarray) -> Postings:
    units = np.arange(len(texts.sizes), dtype="u4").repeat(texts.sizes)
    counts = np.frombuffer(b"".join(texts.counts), "u1")
    codes = (np.clip(counts, 1, MOST_COUNT).astype("u2") << LENGTH_BITS) | lengths[units]
    return postings(np.frombuffer(b"".join(texts.hashes), "<u8"), units, codes)


def _labels(marks: _Marks, shape: _Shape) -> Postings:
    hashes: list[int] = []
    units: list[int] = []
    firsts = (shape.passages.cumsum() - shape.passages).tolist()
    for first, count, labels in zip(firsts, shape.passages.tolist(), marks.labels, strict=True):
        for unit in range(first, first + count):
            hashes += labels
            units += [unit] * len(labels)
    return postings(np.array(hashes, "u8"), np.array(units, "u4"), None)
