"""Finds the rows of an owner that fail their checksums, and reads what can be read of them."""

from collections.abc import Iterator
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow
from beaver_memory.records import DamagedEntry, Owner
from beaver_memory.store.checksums import CHECKED, vector_checksum
from beaver_memory.store.damaged_entries import SUMMARY, UNREADABLE, entry_of
from beaver_memory.store.people import summary_of
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite.owners import OwnerKey
from beaver_memory.store.sqlite.people import person_is_whole, shown
from beaver_memory.store.sqlite.reads import change_of
from beaver_memory.store.sqlite.rows import each_row, parts_of, verify

_SQL = queries_of("sqlite", "damaged_rows")

_MEMORY = tuple(name for name in CHECKED if name != "id")
_PERSON = ("folded", "name", "aliases", "mention_count")


def damaged_rows(connection: apsw.Connection, key: OwnerKey, owner: Owner) -> Iterator[DamagedEntry]:
    """Yield the rows of an owner that fail their checksums, as far as they can be read."""
    # The indexes tell which rows are there and whose they are, whatever the rows say.
    rows = [row for (row,) in connection.execute(_SQL["rows_of_owner"], key)]
    ids = {row: int(connection.execute(_SQL["id_of_row"], (key[0], row)).get or 0) for row in rows}
    yield from _memories(connection, ids, {key[1]: owner})
    yield from _derived(connection, key, owner, {*ids.values()})
    for *texts, count, checksum in connection.execute(_SQL["people"], key):
        if not person_is_whole(owner, texts, checksum):
            yield entry_of("person", shown(texts[0]), owner, dict(zip(_PERSON, (*texts, count), strict=True)))
    for *row, checksum in connection.execute(_SQL["summaries"], key):
        if summary_of(owner, row, checksum) is None:
            yield entry_of("summary", shown(row[1]), owner, dict(zip(SUMMARY, row, strict=True)))


def _memories(connection: apsw.Connection, ids: dict[int, int], owners: dict[int, Owner]) -> Iterator[DamagedEntry]:
    parts, (owner,) = parts_of(owners), owners.values()
    for row, id_ in ids.items():
        try:
            for each in each_row(connection, _SQL["row"], (row,)):
                verify(each, parts)
        except (DamagedRow, apsw.CorruptError):
            yield entry_of("memory", id_, owner, {name: _value(connection, name, row) for name in _MEMORY})


def _value(connection: apsw.Connection, name: str, row: int) -> Any:
    """Return the value of one column, a text that is not UTF-8 as bytes."""
    try:
        try:
            return connection.execute(_SQL["column"].format(column=name), (row,)).get
        except UnicodeDecodeError:
            return connection.execute(_SQL["column"].format(column=f"CAST({name} AS BLOB)"), (row,)).get
    except apsw.CorruptError:
        return UNREADABLE


def _derived(connection: apsw.Connection, key: OwnerKey, owner: Owner, ids: set[int]) -> Iterator[DamagedEntry]:
    """Yield embeddings and entries of histories; a tenant's are read, and those of other owners left out."""
    for id_, model, data, checksum in connection.execute(_SQL["embeddings"], key[:1]):
        if id_ in ids and vector_checksum(id_, model, data) != checksum:
            yield entry_of("embedding", id_, owner, {"model": model, "data": data})
    for id_, event, at, old, new, checksum in connection.execute(_SQL["changes"], key[:1]):
        if id_ in ids and change_of(id_, (event, at, old, new), checksum) is None:
            yield entry_of("history", id_, owner, {"event": event, "at": at, "old": old, "new": new})
