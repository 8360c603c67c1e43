"""Questions about visible memories."""

import json
from collections.abc import Collection, Iterable
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Change, Memory, Store
from beaver_memory.store.bounds import LARGEST, bounded, usable
from beaver_memory.store.rows import COLUMNS, memory_of, retold
from beaver_memory.store.sqlite.owners import TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions, marks
from beaver_memory.texts import moment

_SQL = sqlite_queries("reads")


def visible(
    connection: apsw.Connection, owners: TenantOwners, ids: Iterable[int], filters: Filters
) -> dict[int, Memory]:
    """Return the visible memories among `ids`, by id."""
    if not owners:
        return {}
    which = conditions(filters)
    sql = _SQL["memories_by_id"].format(columns=COLUMNS, owners=marks(len(owners.names)), conditions=which.sql)
    rows = connection.execute(sql, (json.dumps(usable(ids)), owners.tenant, *owners.names, *which.params))
    memories = (memory_of(row, owners.names) for row in rows)
    return {memory.id: memory for memory in memories}


def recent(connection: apsw.Connection, owners: TenantOwners, filters: Filters, limit: int) -> list[Memory]:
    """Return the newest visible memories, newest first."""
    return _walk(connection, owners, conditions(filters), bounded(limit))


def timeline(
    connection: apsw.Connection, owners: TenantOwners, anchor: int, filters: Filters, *, before: int, after: int
) -> list[Memory]:
    """Return a memory with its neighbours in time, oldest first; an empty list if it is not visible."""
    found = visible(connection, owners, [anchor], filters)
    if not found:
        return []
    at = connection.execute(_SQL["created_at"], (owners.tenant, anchor)).get
    earlier, later = neighbours(connection, owners, (at, anchor), filters, before=before, after=after)
    return [*reversed(earlier), found[anchor], *later]


def neighbours(
    connection: apsw.Connection,
    owners: TenantOwners,
    place: tuple[int, int],
    filters: Filters,
    *,
    before: int,
    after: int,
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories before and after a moment and an id, the nearest first."""
    which = conditions(filters)
    at, id_ = place[0], min(max(place[1], 0), LARGEST)
    earlier = _walk(connection, owners, which, bounded(before), ("<", at, id_))
    return earlier, _walk(connection, owners, which, bounded(after), (">", at, id_))


def history(
    connection: apsw.Connection, owners: TenantOwners, memory: Memory, stores: Collection[Store]
) -> list[Change]:
    """Return the history of a memory, oldest first: its addition, and the changes within these stores."""
    entries, store = [], memory.store
    for event, at, old, new in connection.execute(_SQL["history"], (owners.tenant, memory.id)):
        entry = Change(event=event, at=moment(at), old=retold(old), new=retold(new))
        # An entry holds only the changed fields: going backwards tells in which store the memory was before.
        before = entry.old.get("store", store)
        if {before, store} <= {*stores}:
            entries.append(entry)
        store = before
    added = connection.execute(_SQL["added_at"], (owners.tenant, memory.id)).get
    return [Change(event="ADD", at=moment(added)), *reversed(entries)]


Bound = tuple[str, int, int]


def _walk(
    connection: apsw.Connection,
    owners: TenantOwners,
    which: Conditions,
    limit: int,
    bound: Bound | None = None,
) -> list[Memory]:
    """Return memories in order of time: the newest first, or from a bound onwards."""
    found: dict[int, Memory] = {}
    for sql, params in _walks(owners, which, bound):
        for row in connection.execute(sql, (*params, limit)):
            memory = memory_of(row, owners.names)
            found[memory.id] = memory
    backwards = bound is None or bound[0] == "<"
    return sorted(found.values(), key=_age, reverse=backwards)[:limit]


def _age(memory: Memory) -> tuple[Any, int]:
    return memory.created_at, memory.id


def _walks(owners: TenantOwners, which: Conditions, bound: Bound | None) -> list[tuple[str, tuple[Any, ...]]]:
    """Return one statement for each owner and each way in: their results are merged, so that each follows an index."""
    limits = () if bound is None else (bound[1], bound[1], bound[2])
    by_label = _statement(_SQL["walk_by_label"], which, bound, ("l.created_at", "l.memory"))
    if which.ways:
        return [(by_label, (*owner, way, *which.params, *limits)) for owner in owners for way in which.ways]
    plain = _statement(_SQL["walk_by_time"], which, bound, ("o.created_at", "o.id"))
    return [(plain, (*owner, *which.params, *limits)) for owner in owners]


def _statement(template: str, which: Conditions, bound: Bound | None, key: tuple[str, str]) -> str:
    side = "<" if bound is None else bound[0]
    # The first comparison lets the index begin at the bound, the second one is exact.
    bounds = "" if bound is None else f"AND {key[0]} {side}= ? AND ({key[0]}, {key[1]}) {side} (?, ?)"
    order = "DESC" if side == "<" else "ASC"
    return template.format(columns=COLUMNS, conditions=which.sql, bounds=bounds, order=order)
