"""Reads rows of memories with their checksums.

One damaged record fails a whole statement: `fetched` reads around rows whose pages SQLite cannot read.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory, Owner
from beaver_memory.store.checksums import BLOBS, CHECKED, TEXTS, access_part, crc_of, owner_part
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import COLUMNS as SHOWN
from beaver_memory.store.rows import index_row_of, memory_of
from beaver_memory.store.sqlite.owners import OwnerKey, TenantDamage, TenantOwners

_SQL = queries_of("sqlite", "rows")

Row = Sequence[Any]


def _bytes_of(name: str) -> str:
    if name in BLOBS:
        # Bytes that damage has made a text may not be UTF-8.
        return f"iif(typeof(o.{name}) = 'blob', o.{name}, NULL)"
    return f"CAST(o.{name} AS BLOB)" if name in TEXTS else f"o.{name}"


_NAMES = ("length", "terms", "checksum", *(name.removeprefix("o.") for name in SHOWN.split(", ")))
_COLUMNS = ", ".join(f"o.{name}" for name in _NAMES)
_COLUMNS_AS_BYTES = ", ".join(map(_bytes_of, _NAMES))
FAILS = _SQL["fails"].format(columns=", ".join(map(_bytes_of, CHECKED)))
"""The condition that a row fails its checksum."""

_LENGTH, _TERMS, _CHECKSUM, _ID, _SHARES, _ACCESS, _UID, _FIRST_TEXT, _OWNER = map(
    _NAMES.index, ("length", "terms", "checksum", "id", "confidence", "last_accessed_at", "uid", TEXTS[0], "owner")
)
_indexed = itemgetter(
    *map(
        (*_NAMES, "version").index,
        (
            *("id", "version", "deleted_at", "terms", "length", "store", "type", "scope", "project", "session"),
            *("agent", "source", "speaker", "tags", "related_files", "related_people", "created_at", "updated_at"),
            *("expires_at", "valid_from", "valid_until", "mention_count", "importance", "confidence", "pinned"),
            *("uid", "doubted_by"),
        ),
    )
)

people_in = itemgetter(*map(_NAMES.index, ("related_people", "created_at")))
"""Returns the names of people in a row of `rows_of`, in their stored form, and its moment."""

Parts = Mapping[int, bytes]
"""The bytes of owners in checksums, by the numbers of the owners."""


def rows_of(connection: apsw.Connection, owners: TenantOwners, sql: str, params: Sequence[Any]) -> Sequence[Row]:
    """Return the rows of a statement whose `{columns}` are those that `whole_memory` reads; others may follow.

    A row that cannot be read is left out and noted.
    """
    try:
        return fetched(connection, owners, sql.replace("{columns}", _COLUMNS), params)
    except UnicodeDecodeError:
        # One damaged text must not hide the other rows.
        rows = fetched(connection, owners, sql.replace("{columns}", _COLUMNS_AS_BYTES), params)
        return [_decoded(row) for row in rows]


def each_row(connection: apsw.Connection, sql: str, params: Sequence[Any]) -> Iterator[Row]:
    """Yield the rows of a statement as `rows_of`, one by one. A text that is not UTF-8 fails no statement."""
    return map(_decoded, connection.execute(sql.replace("{columns}", _COLUMNS_AS_BYTES), params))


def _decoded(row: Row) -> Row:
    """Return a row with its texts as texts; the bytes of a damaged one become lone surrogates, which have no UTF-8."""
    texts = (
        text.decode(errors="surrogateescape") if isinstance(text, bytes) else text for text in row[_FIRST_TEXT:_OWNER]
    )
    return (*row[:_FIRST_TEXT], *texts, *row[_OWNER:])


def parts_of(owners: Mapping[int, Owner]) -> Parts:
    """Return the bytes of owners in checksums."""
    return {number: owner_part(owner) for number, owner in owners.items()}


def whole_memory(row: Row, owners: Mapping[int, Owner], parts: Parts) -> Memory:
    """Return the memory that a row of `rows_of` holds.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    verify(row, parts)
    return memory_of(row[_ID:], owners)


def whole_memories(rows: Iterable[Row], owners: Mapping[int, Owner], damaged: TenantDamage) -> Iterator[Memory]:
    """Yield the memories that rows of `rows_of` hold; note those that fail their checksums."""
    return (memory_of(row[_ID:], owners) for row in whole_rows(rows, owners, damaged))


def whole_rows(rows: Iterable[Row], owners: Mapping[int, Owner], damaged: TenantDamage) -> Iterator[Row]:
    """Yield the rows of `rows_of` that have their checksums, and note the others."""
    parts = parts_of(owners)
    for row in rows:
        try:
            verify(row, parts)
        except DamagedRow:
            damaged(row[_ID])
        else:
            yield row


def index_row(row: Row, parts: Parts, damaged: TenantDamage) -> IndexRow:
    """Return the index row of a row of `rows_of`, followed by its version; without a memory if it is damaged."""
    try:
        verify(row, parts)
    except DamagedRow:
        damaged(row[_ID])
        # No memory has the id 0: an index that takes the row out removes none.
        return IndexRow(id=0, version=row[-1], gone=True)
    return index_row_of(_indexed(row))


def verify(row: Row, parts: Parts) -> None:
    """Compare a row of `rows_of` with its checksum.

    Raises:
        DamagedRow: the row fails its checksum.
    """
    try:
        numbers = (*row[_ID:_SHARES], row[_LENGTH], *row[_SHARES:_ACCESS])
        texts = "\0".join(row[_FIRST_TEXT:_OWNER]).encode()
        found = crc_of(numbers, parts[row[_OWNER]], texts, (*row[_UID:_FIRST_TEXT], row[_TERMS]))
        is_whole = found ^ access_part(row[_ACCESS]) == row[_CHECKSUM]
    except (struct.error, TypeError, ValueError, KeyError) as error:
        raise DamagedRow("a value that its column never has") from error
    if not is_whole:
        raise DamagedRow("a row that fails its checksum")


def fetched(connection: apsw.Connection, owners: TenantOwners, sql: str, params: Sequence[Any]) -> Sequence[Row]:
    """Return the rows of a statement about memories of owners, without those that cannot be read; note these.

    Args:
        connection: a connection that reads.
        owners: the owners.
        sql: a statement on `observations AS o`; a line begins with its `WHERE`, and its conditions are joined by `AND`.
        params: the values of its placeholders.

    Raises:
        apsw.CorruptError: more than rows is damaged.
    """
    try:
        return connection.execute(sql, params).fetchall()
    except apsw.CorruptError:
        lost = [row for key in owners for row in _unreadable(connection, owners, key)]
        if not lost:
            raise
        return connection.execute(_without(sql, lost), params).fetchall()


def unreadable_ids(connection: apsw.Connection, tenant: int, ids: Sequence[int]) -> list[int]:
    """Return those ids of a tenant's memories whose rows cannot be read."""
    rows = ((id_, connection.execute(_SQL["row_of"], (tenant, id_)).get) for id_ in ids)
    return [id_ for id_, row in rows if row is not None and not _is_readable(connection, row)]


def _unreadable(connection: apsw.Connection, owners: TenantOwners, key: OwnerKey) -> list[int]:
    """Return the numbers of an owner's rows that cannot be read, and note their ids; the indexes tell both."""
    rows = [row for (row,) in connection.execute(_SQL["rows_of_owner"], key)]
    lost = [row for row in rows if not _is_readable(connection, row)]
    for row in lost:
        owners.damaged(connection.execute(_SQL["id_of_row"], (key[0], row)).get or 0)
    return lost


def _is_readable(connection: apsw.Connection, row: int) -> bool:
    try:
        return bool(connection.execute(_SQL["read_row"], (row,)).fetchall())
    except apsw.CorruptError:
        return False
    except UnicodeDecodeError:
        return True


def _without(sql: str, rows: Sequence[int]) -> str:
    # The index has the number of the row, so SQLite leaves a row out before it reads it.
    return sql.replace("\nWHERE ", f"\nWHERE o.row NOT IN ({','.join(map(str, rows))}) AND ", 1)
