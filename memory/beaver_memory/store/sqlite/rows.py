"""Reads rows of memories with their checksums. Texts are read as bytes, so that damaged ones fail no query."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory, Owner
from beaver_memory.store.checksums import CHECKED, TEXTS, memory_checksum
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.rows import COLUMNS as SHOWN
from beaver_memory.store.rows import index_row_of, memory_of
from beaver_memory.store.sqlite.damage import TenantDamage
from beaver_memory.store.sqlite.queries import sqlite_queries

_NAMES = (*CHECKED, "owner", "checksum")
_READ = [f"CAST(o.{name} AS BLOB)" if name in TEXTS else f"o.{name}" for name in _NAMES]
COLUMNS = ", ".join(_READ)
"""Columns that `whole_memory` reads."""

OWNER, CHECKSUM = len(CHECKED), len(CHECKED) + 1
_FIRST_TEXT = len(CHECKED) - len(TEXTS)

FAILS = sqlite_queries("rows")["fails"].format(columns=", ".join(_READ[:OWNER]))
"""The condition that a row fails its checksum."""

_shown = itemgetter(*(_NAMES.index(name.strip().removeprefix("o.")) for name in SHOWN.split(",")))
_INDEXED = (
    *("id", "version", "deleted_at", "terms", "length", "store", "type", "scope", "project", "session", "agent"),
    *("source", "speaker", "tags", "related_files", "related_people", "created_at", "updated_at", "expires_at"),
    *("valid_from", "valid_until", "mention_count", "importance", "confidence", "pinned"),
)
_indexed = itemgetter(*((*_NAMES, "version").index(name) for name in _INDEXED))


def whole_memory(row: Sequence[Any], owners: Mapping[int, Owner]) -> Memory:
    """Return the memory that a row of `COLUMNS` holds.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    return memory_of(_shown(_verified(row, owners)), owners)


def whole_memories(
    rows: Iterable[Sequence[Any]], owners: Mapping[int, Owner], damaged: TenantDamage
) -> Iterator[Memory]:
    """Yield the memories that rows of `COLUMNS` hold; note those that fail their checksums."""
    for row in rows:
        try:
            memory = whole_memory(row, owners)
        except DamagedRow:
            damaged(row[0])
        else:
            yield memory


def is_whole(row: Sequence[Any], owners: Mapping[int, Owner]) -> bool:
    """Return whether a row of `COLUMNS` has its checksum."""
    try:
        _verified(row, owners)
    except DamagedRow:
        return False
    return True


def index_row(row: Sequence[Any], owners: Mapping[int, Owner], damaged: TenantDamage) -> IndexRow:
    """Return the index row of a row of `COLUMNS`, followed by its version; without a memory if it is damaged."""
    try:
        return index_row_of(_indexed(_verified(row, owners)))
    except DamagedRow:
        damaged(row[0])
        # No memory has the id 0: an index that takes the row out removes none.
        return IndexRow(id=0, version=row[-1], gone=True)


def _verified(row: Sequence[Any], owners: Mapping[int, Owner]) -> Sequence[Any]:
    """Return a row with its texts as texts.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    owner = owners.get(row[OWNER])
    if owner is None or memory_checksum(owner, row[:OWNER]) != row[CHECKSUM]:
        raise DamagedRow("a row that fails its checksum")
    try:
        # No text holds NUL: all are decoded at once.
        texts = b"\0".join(row[_FIRST_TEXT:OWNER]).decode().split("\0")
    except ValueError as error:
        raise DamagedRow("a text that is none") from error
    return (*row[:_FIRST_TEXT], *texts, *row[OWNER:])
