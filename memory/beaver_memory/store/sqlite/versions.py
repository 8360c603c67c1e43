"""Versions: numbers of changes, each greater than all before it of its owner; and the changes above one.

`VersionCache` keeps the newest version and vector per owner until the next write.
"""

import json
from collections.abc import Collection, Sequence
from weakref import WeakKeyDictionary

import apsw

from beaver_memory.records import Owner, Scope
from beaver_memory.store.bounds import bounded
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite.owners import OwnerKey, OwnerNumbers, TenantOwners, live
from beaver_memory.store.sqlite.rows import FAILS, fetched, index_row, parts_of, rows_of
from beaver_memory.texts import cleaned

_SQL = queries_of("sqlite", "versions")

MOST_KNOWN = 1_000
"""Answers that are cached for a connection."""

Versions = list[tuple[int, int]]
"""Of each owner: the version of the newest change, and of the newest embedding by a model."""

_Known = dict[tuple[tuple[Owner, ...], str | None], Versions]


def next_version(connection: apsw.Connection, owner: OwnerKey, count: int = 1, *, more: int = 0) -> int:
    """Take `count` versions of an owner and return the first; they are in order of commits, as one process writes.

    Args:
        connection: the connection that writes.
        owner: the owner.
        count: how many versions are taken.
        more: by how many the number of the owner's live memories changes.

    Raises:
        apsw.CorruptError: the owner has no row any more, because another program changed the database.
    """
    first = connection.execute(_SQL["take_versions"], (count, more, *owner)).get
    if first is None:
        raise apsw.CorruptError("an owner without a row")
    return int(first)


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
    rows = rows_of(connection, owners, _SQL["changed_memories"], (*key, after, bounded(limit)))
    found = [index_row(row, parts, damaged) for row in rows]
    if after == 0:
        _count(connection, owners, found, limit)
    return found


def _count(connection: apsw.Connection, owners: TenantOwners, found: Sequence[IndexRow], limit: int) -> None:
    """Note that memories of an owner are missing: there are fewer than were counted when they were written.

    The index by time is counted too: a damaged page of it hides memories from lists.
    """
    (key,) = owners
    count = sum(not row.gone for row in found)
    if len(found) >= limit:
        count = _counted(connection, owners, "count_live_rows")
    if min(count, _counted(connection, owners, "count_live_rows_by_time")) < live(connection, key):
        owners.damage.note("count", *key)


def _counted(connection: apsw.Connection, owners: TenantOwners, query: str) -> int:
    (key,) = owners
    (row,) = fetched(connection, owners, _SQL[query], key)
    return int(row[0])


def ids(connection: apsw.Connection, owners: TenantOwners, scopes: Collection[Scope]) -> list[int]:
    """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
    (key,) = owners
    sql = _SQL["ids_by_version"].format(fails=FAILS)
    found = fetched(connection, owners, sql, (*key, json.dumps([*scopes])))
    for id_, fails in found:
        if fails:
            owners.damaged(id_)
    return [id_ for id_, fails in found if not fails]


class VersionCache:
    """Tells the versions of owners. Thread-safe.

    Every search asks for them first. SQLite says in one step whether another connection has written since the last
    question on this one, and connections that are lent for reading never write.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[apsw.Connection, tuple[int, _Known]] = WeakKeyDictionary()

    def of(
        self, connection: apsw.Connection, book: OwnerNumbers, owners: Sequence[Owner], model: str | None
    ) -> Versions:
        """Return the versions of owners, within a transaction of a connection that only reads."""
        moment = int(connection.execute("PRAGMA data_version").get)
        then, known = self._known.get(connection, (None, {}))
        if then != moment:
            known = {}
            self._known[connection] = moment, known
        key = tuple(owners), model
        if key not in known:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[key] = _versions(connection, book, owners, model)
        return list(known[key])


def _versions(connection: apsw.Connection, book: OwnerNumbers, owners: Sequence[Owner], model: str | None) -> Versions:
    name = None if model is None else cleaned(model)
    keys = [book.find(connection, owner) for owner in owners]
    # An owner without memories has no number either.
    return [last_versions(connection, key, name) if key else (0, 0) for key in keys]
