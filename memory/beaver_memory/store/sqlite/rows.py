"""Reads rows of memories with their checksums. Texts are read as bytes, so that damaged ones fail no query."""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory, Owner
from beaver_memory.store.checksums import (
    ADDED,
    BLOBS,
    CHECKED,
    NUMBERS,
    TEXTS,
    access_part,
    crc_of,
    owner_part,
    with_added,
)
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.rows import COLUMNS as SHOWN
from beaver_memory.store.rows import index_row_of, memory_of
from beaver_memory.store.sqlite.damage import TenantDamage
from beaver_memory.store.sqlite.queries import sqlite_queries

_BYTES = (*TEXTS, *ADDED)


def _read(name: str) -> str:
    return f"CAST(o.{name} AS BLOB)" if name in _BYTES else f"o.{name}"


_SHOWN = tuple(name.strip().removeprefix("o.") for name in SHOWN.split(","))
_NAMES = (*_BYTES, *(name for name in _SHOWN if name not in _BYTES), "length", "terms", "checksum")
COLUMNS = ", ".join(map(_read, _NAMES))
"""Columns that `whole_memory` reads."""

FAILS = sqlite_queries("rows")["fails"].format(columns=", ".join(map(_read, CHECKED)))
"""The condition that a row fails its checksum."""

_OWNER, _CHECKSUM, _ACCESS, _ID = (_NAMES.index(name) for name in ("owner", "checksum", "last_accessed_at", "id"))
_HASH, _TERMS = (_NAMES.index(name) for name in BLOBS)
_ADDED, _AFTER = len(TEXTS), len(_BYTES)
_numbers = itemgetter(*map(_NAMES.index, NUMBERS))
_shown = itemgetter(*map(_NAMES.index, _SHOWN))
_indexed = itemgetter(
    *map(
        (*_NAMES, "version").index,
        (
            *(
                "id",
                "version",
                "deleted_at",
                "terms",
                "length",
                "store",
                "type",
                "scope",
                "project",
                "session",
                "agent",
            ),
            *("source", "speaker", "tags", "related_files", "related_people", "created_at", "updated_at"),
            *("expires_at", "valid_from", "valid_until", "mention_count", "importance", "confidence", "pinned"),
        ),
    )
)

Parts = Mapping[int, bytes]
"""The bytes of owners in checksums, by the numbers of the owners."""


def parts_of(owners: Mapping[int, Owner]) -> Parts:
    """Return the bytes of owners in checksums."""
    return {number: owner_part(owner) for number, owner in owners.items()}


def whole_memory(row: Sequence[Any], owners: Mapping[int, Owner], parts: Parts) -> Memory:
    """Return the memory that a row of `COLUMNS` holds.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    return memory_of(_shown(verified(row, parts)), owners)


def whole_memories(
    rows: Iterable[Sequence[Any]], owners: Mapping[int, Owner], damaged: TenantDamage
) -> Iterator[Memory]:
    """Yield the memories that rows of `COLUMNS` hold; note those that fail their checksums."""
    parts = parts_of(owners)
    for row in rows:
        try:
            memory = memory_of(_shown(verified(row, parts)), owners)
        except DamagedRow:
            damaged(row[_ID])
        else:
            yield memory


def index_row(row: Sequence[Any], parts: Parts, damaged: TenantDamage) -> IndexRow:
    """Return the index row of a row of `COLUMNS`, followed by its version; without a memory if it is damaged."""
    try:
        return index_row_of(_indexed(verified(row, parts)))
    except DamagedRow:
        damaged(row[_ID])
        # No memory has the id 0: an index that takes the row out removes none.
        return IndexRow(id=0, version=row[-1], gone=True)


def verified(row: Sequence[Any], parts: Parts) -> Sequence[Any]:
    """Return a row of `COLUMNS` with its texts as texts.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    try:
        joined = b"\0".join(row[:_ADDED])
        crc = with_added(crc_of(_numbers(row), parts[row[_OWNER]], joined, row[_HASH], row[_TERMS]), row[_ADDED:_AFTER])
        if crc ^ access_part(row[_ACCESS]) == row[_CHECKSUM]:
            # No text holds NUL: all are decoded at once.
            return [*b"\0".join(row[:_AFTER]).decode().split("\0"), *row[_AFTER:]]
    except (struct.error, TypeError, ValueError, KeyError) as error:
        raise DamagedRow("a value that its column never has") from error
    raise DamagedRow("a row that fails its checksum")
