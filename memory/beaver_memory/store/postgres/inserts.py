"""Adds memories: their short rows, their texts and the counts of their owners."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from beaver_memory.records import Owner
from beaver_memory.store.fingerprint import Named, free_uids
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import (
    OBSERVATION,
    OBSERVATION_TYPES,
    TEXT,
    TEXT_TYPES,
    new_values,
    row_of,
    with_checksum,
)
from beaver_memory.store.postgres.versions import take_versions
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import micros

_SQL = queries_of("postgres", "inserts")

COPIED = 40
"""From so many rows on, COPY is faster than single statements. It is not possible within a pipeline."""


def add(
    connection: Any, items: Sequence[Analysed], keys: Mapping[Owner, OwnerKey], ids: Sequence[int], now: datetime
) -> None:
    """Add memories, within one transaction."""
    at = micros(now)
    uids = uids_of(connection, items, keys)
    values = [
        new_values(item, keys[item.memory.owner], id_, at, uid) for item, id_, uid in zip(items, ids, uids, strict=True)
    ]
    by_owner: dict[OwnerKey, list[dict[str, Any]]] = defaultdict(list)
    for each, item in zip(values, items, strict=True):
        by_owner[keys[item.memory.owner]].append(with_checksum(item.memory.owner, each))
    for key in sorted(by_owner, key=_place):
        mine = by_owner[key]
        length = sum(each["length"] for each in mine)
        first = take_versions(connection, key, len(mine), live=len(mine), length=length)
        insert(connection, [each | {"version": version} for version, each in enumerate(mine, first)])


def uids_of(connection: Any, items: Sequence[Analysed], keys: Mapping[Owner, OwnerKey]) -> list[bytes]:
    """Return a uid for each new memory that no other memory of its tenant has, forgotten ones included."""
    given = [(keys[item.memory.owner].tenant, bytes.fromhex(item.memory.uid)) for item in items]
    taken: list[Named] = []
    for tenant in {tenant for tenant, uid in given if uid}:
        wanted = {"tenant": tenant, "uids": [uid for owner, uid in given if owner == tenant]}
        rows = connection.execute(_SQL["taken_uids"], wanted, binary=True).fetchall()
        taken += [(tenant, bytes(uid)) for (uid,) in rows]
    return free_uids(given, taken)


def insert(connection: Any, values: Sequence[Mapping[str, Any]]) -> None:
    """Insert whole memories."""
    put_rows(connection, "observations", OBSERVATION, OBSERVATION_TYPES, (row_of(each, OBSERVATION) for each in values))
    put_rows(connection, "texts", TEXT, TEXT_TYPES, (row_of(each, TEXT) for each in values))


def put_rows(
    connection: Any, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert rows into a table, many of them by COPY."""
    given = [*rows]
    names = ", ".join(columns)
    if len(given) < COPIED:
        marks = ", ".join(f"%s::{kind}" for kind in types)
        with connection.cursor() as cursor:
            cursor.executemany(_SQL["insert_row"].format(table=table, columns=names, marks=marks), given)
        return
    with connection.cursor() as cursor, cursor.copy(_SQL["copy_rows"].format(table=table, columns=names)) as copy:
        copy.set_types(types)
        for row in given:
            copy.write_row(row)


def _place(key: OwnerKey) -> tuple[int, int]:
    return key.tenant, key.owner
