"""Versions: numbers of changes, each greater than all before it of its owner; and the changes above one."""

import json
from collections.abc import Collection

import apsw

from beaver_memory.records import Scope
from beaver_memory.store.bounds import bounded
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.rows import index_row, parts_of, rows_of

_SQL = sqlite_queries("versions")


def next_version(connection: apsw.Connection, owner: OwnerKey, count: int = 1, *, more: int = 0) -> int:
    """Take `count` versions of an owner and return the first; they are in order of commits, as one process writes.

    Args:
        connection: the connection that writes.
        owner: the owner.
        count: how many versions are taken.
        more: by how many the number of the owner's live memories changes.
    """
    return int(connection.execute(_SQL["take_versions"], (count, more, *owner)).get)


def last_version(connection: apsw.Connection, owner: OwnerKey) -> int:
    """Return the version of the newest change of an owner's memories, 0 if there is none."""
    return connection.execute(_SQL["last_version"], owner).get or 0


def last_versions(connection: apsw.Connection, owner: OwnerKey, model: str | None) -> tuple[int, int]:
    """Return the versions of an owner's newest change and newest embedding by a model, 0 if there is none."""
    change, vector = connection.execute(_SQL["last_versions"], (*owner, model)).get
    return change or 0, vector or 0


def changed(connection: apsw.Connection, owners: TenantOwners, after: int, limit: int) -> list[IndexRow]:
    """Return the rows of an owner that have a version above `after`, in order of versions; note damaged ones."""
    (key,) = owners
    parts, damaged = parts_of(owners.names), owners.damaged
    rows = rows_of(connection, _SQL["changed_memories"], (*key, after, bounded(limit)))
    return [index_row(row, parts, damaged) for row in rows]


def ids(connection: apsw.Connection, owner: OwnerKey, scopes: Collection[Scope]) -> list[int]:
    """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
    return [id_ for (id_,) in connection.execute(_SQL["ids_by_version"], (*owner, json.dumps([*scopes])))]
