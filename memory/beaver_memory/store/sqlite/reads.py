"""Questions about visible memories."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from struct import error as StructError  # noqa: N812 - a class
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Change, Memory, Store
from beaver_memory.store.bounds import LARGEST, bounded, usable
from beaver_memory.store.checksums import change_checksum
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import retold
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.rows import FAILS, rows_of, unreadable_ids, whole_memories
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions, marks
from beaver_memory.texts import moment

_SQL = queries_of("sqlite", "reads")


def visible(
    connection: apsw.Connection, owners: TenantOwners, ids: Iterable[int], filters: Filters
) -> dict[int, Memory]:
    """Return the visible memories among `ids`, by id."""
    if not owners:
        return {}
    which = conditions(filters)
    wanted = usable(ids)
    sql = _SQL["memories_by_id"].replace("{owners}", marks(len(owners.names))).replace("{conditions}", which.sql)
    rows = rows_of(connection, owners, sql, (json.dumps(wanted), owners.tenant, *owners.names, *which.params))
    found = {memory.id: memory for memory in whole_memories(rows, owners.names, owners.damaged)}
    if len(found) < len(wanted):
        for id_ in damaged_among(connection, owners, [id_ for id_ in wanted if id_ not in found]):
            owners.damaged(id_)
    return found


Place = tuple[OwnerKey, int]
"""The owner and the moment of a memory, as an index tells them."""


def damaged_places(
    connection: apsw.Connection, owners: TenantOwners, ids: Iterable[int], filters: Filters
) -> dict[int, Place]:
    """Return the memories of visible owners that fail their checksums, by id.

    A damaged row does not tell its store, so only a reader of all stores gets any.
    """
    if not owners or {*filters.view.stores} != {*Store}:
        return {}
    looked_up = (
        (id_, key, connection.execute(_SQL["moment_in_index"], (*key, id_)).get)
        for id_ in damaged_among(connection, owners, ids)
        for key in owners
    )
    return {id_: (key, moment) for id_, key, moment in looked_up if moment is not None}


def damaged_among(connection: apsw.Connection, owners: TenantOwners, ids: Iterable[int]) -> list[int]:
    """Return the ids of a tenant's memories that fail their checksums."""
    wanted = usable(ids)
    try:
        given = (json.dumps(wanted), owners.tenant)
        return [id_ for (id_,) in connection.execute(_SQL["damaged_among"].format(fails=FAILS), given)]
    except apsw.CorruptError:
        lost = unreadable_ids(connection, owners.tenant, wanted)
        rest = [id_ for id_ in wanted if id_ not in lost]
        return [*lost, *(damaged_among(connection, owners, rest) if lost else [])]


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
    for event, at, old, new in _changes(connection, owners, memory.id):
        entry = Change(event=event, at=moment(at), old=retold(old), new=retold(new))
        # An entry holds only the changed fields: going backwards tells in which store the memory was before.
        before = entry.old.get("store", store)
        if {before, store} <= {*stores}:
            entries.append(entry)
        store = before
    added = connection.execute(_SQL["added_at"], (owners.tenant, memory.id)).get
    return [Change(event="ADD", at=moment(added)), *reversed(entries)]


def _changes(connection: apsw.Connection, owners: TenantOwners, id_: int) -> Iterator[tuple[str, int, str, str]]:
    """Yield the entries of a memory's history, the newest first; note those that fail their checksums."""
    for *entry, checksum in connection.execute(_SQL["history"], (owners.tenant, id_)):
        found = change_of(id_, entry, checksum)
        if found is not None:
            yield found
        else:
            owners.damage.note("history", owners.tenant, id_)


def change_of(id_: int, entry: Sequence[Any], checksum: int) -> tuple[str, int, str, str] | None:
    """Return event, moment, old and new values of an entry in a history; `None` if it fails its checksum."""
    try:
        event, at, old, new = entry[0].decode(), entry[1], entry[2].decode(), entry[3].decode()
        is_whole = change_checksum(id_, event, at, old, new) == checksum
    except (ValueError, AttributeError, StructError):
        return None
    return (event, at, old, new) if is_whole else None


Bound = tuple[str, int, int]


def _walk(
    connection: apsw.Connection, owners: TenantOwners, which: Conditions, limit: int, bound: Bound | None = None
) -> list[Memory]:
    """Return memories in order of time: the newest first, or from a bound onwards."""
    found: dict[int, Memory] = {}
    for sql, params in _walks(owners, which, bound):
        for memory in _first(connection, owners, sql, params, limit):
            found[memory.id] = memory
    backwards = bound is None or bound[0] == "<"
    return sorted(found.values(), key=_age, reverse=backwards)[:limit]


def _first(
    connection: apsw.Connection, owners: TenantOwners, sql: str, params: tuple[Any, ...], limit: int
) -> list[Memory]:
    """Return the first memories of a walk, as many as if no row was damaged."""
    rows = rows_of(connection, owners, sql, (*params, limit))
    whole = [*whole_memories(rows, owners.names, owners.damaged)]
    if len(whole) == len(rows) or len(rows) < limit:
        return whole
    return _first(connection, owners, sql, params, bounded(limit + len(rows) - len(whole)))


def _age(memory: Memory) -> tuple[Any, int]:
    return memory.created_at, memory.id


def _walks(owners: TenantOwners, which: Conditions, bound: Bound | None) -> list[tuple[str, tuple[Any, ...]]]:
    """Return one statement for each owner and each way in: their results are merged, so that each follows an index."""
    limits = () if bound is None else (bound[1], bound[1], bound[2])
    by_label = _statement(_SQL["walk_by_label"], which, bound, ("l.created_at", "l.memory"))
    if which.ways:
        return [(by_label, (*owner, way, *which.params, *limits)) for owner in owners for way in which.ways]
    plain = _statement(_SQL["walk_by_time"], which, bound, ("o.created_at", "o.id"))
    return [(plain, (*owner, *which.params, *which.stores, *limits)) for owner in owners]


def _statement(template: str, which: Conditions, bound: Bound | None, key: tuple[str, str]) -> str:
    side = "<" if bound is None else bound[0]
    # The first comparison lets the index begin at the bound, the second one is exact.
    bounds = "" if bound is None else f"AND {key[0]} {side}= ? AND ({key[0]}, {key[1]}) {side} (?, ?)"
    order = "DESC" if side == "<" else "ASC"
    doubtful = _SQL["doubtful"].format(stores=marks(len(which.stores)), fails=FAILS)
    filters = {"conditions": which.sql, "doubtful": doubtful, "fails": FAILS}
    return template.format(columns="{columns}", bounds=bounds, order=order, **filters)
