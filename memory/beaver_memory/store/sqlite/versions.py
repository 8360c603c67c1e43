"""Versions: numbers of changes, for the whole store, each greater than all before it; and the changes above one."""

import json
from collections.abc import Collection

import apsw

from beaver_memory.records import Scope
from beaver_memory.store.bounds import bounded
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.rows import index_row_of
from beaver_memory.store.sqlite.queries import sqlite_queries

_SQL = sqlite_queries("versions")


def next_version(connection: apsw.Connection, count: int = 1) -> int:
    """Take `count` versions and return the first; they are in order of commits, as only one process writes at once."""
    last = connection.execute(_SQL["take_versions"], (count,)).get
    return int(last) - count + 1


def last_version(connection: apsw.Connection, owner: int) -> int:
    """Return the version of the newest change of an owner's memories, 0 if there is none."""
    return connection.execute(_SQL["last_version"], (owner,)).get or 0


def last_versions(connection: apsw.Connection, owner: int, model: str | None) -> tuple[int, int]:
    """Return the versions of an owner's newest change and newest embedding by a model, 0 if there is none."""
    change, vector = connection.execute(_SQL["last_versions"], (owner, model)).get
    return change or 0, vector or 0


def changed(connection: apsw.Connection, owner: int, after: int, limit: int) -> list[IndexRow]:
    """Return the rows of an owner that have a version above `after`, in order of versions."""
    rows = connection.execute(_SQL["changed_memories"], (owner, after, bounded(limit)))
    return [index_row_of(row) for row in rows]


def ids(connection: apsw.Connection, owner: int, scopes: Collection[Scope]) -> list[int]:
    """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
    return [id_ for (id_,) in connection.execute(_SQL["ids_by_version"], (owner, json.dumps([*scopes])))]
