"""Changes and forgets memories."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from beaver_memory.records import Memory, Owner
from beaver_memory.store.changes import LINKS, changed, columns
from beaver_memory.store.checksums import CHECKED, change_checksum, memory_checksum
from beaver_memory.store.postgres import embeddings
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.reads import Place, damaged_places, locked
from beaver_memory.store.postgres.rows import TEXTS, Stored, folded_of, labels_of, values_of, words_of
from beaver_memory.store.postgres.sql_filters import Seen
from beaver_memory.store.postgres.versions import take_versions
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import EMBEDDED, SEARCHED, told
from beaver_memory.texts import cleaned, micros

_SQL = queries_of("postgres", "update")

PLACES = ("memories", "evidence", "vectors", "history", "labels")
"""The places that `footprint` counts."""

_LABELLED = frozenset({"tags", "related_files", "related_people"})
_LINKED = {"superseded_by": "predecessors", "doubted_by": "doubted"}
"""The statements that find the memories which name others, by the field in which they do."""

_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("store", "type", "scope", "project", "session", "agent", "source", "speaker", "origin"), ""),
    **dict.fromkeys(("expires_at", "valid_from", "valid_until", "last_accessed_at", *LINKS)),
    **dict.fromkeys(("pinned", "token_count", "length"), 0),
    **dict.fromkeys(("tags", "keywords", "related_files", "related_people", "facts"), "[]"),
    **dict.fromkeys(("title", "summary", "narrative", "evidence"), ""),
    **dict.fromkeys(("hash", "terms"), b""),
    **dict.fromkeys(("confidence", "importance"), 0.0),
    "mention_count": 1,
}
"""The values of a memory without content."""


def change(
    connection: Any, seen: Seen, id_: int, *, event: str, now: datetime, fields: Mapping[str, Any]
) -> Memory | None:
    """Change fields of a visible memory, within one transaction; see `MemoryStore.change`."""
    found = locked(connection, seen, [id_]).get(id_)
    if found is None:
        return None
    old = found.memory
    new, differing = changed(old, fields)
    values = columns(new, differing, fields, (found.terms, found.length))
    if not values:
        return old
    after = Stored(
        attrs.evolve(new, updated_at=now), values.get("terms", found.terms), values.get("length", found.length)
    )
    key = key_of(seen, old)
    version = take_versions(connection, key, 1, length=after.length - found.length)
    settings = values | _derived(key, after, differing, values) | {"version": version, "updated_at": micros(now)}
    _set(connection, key, id_, settings | {"checksum": checksum_of(after)})
    if differing:
        entries = {name: (getattr(old, name), getattr(new, name)) for name in differing}
        add_history(connection, key.tenant, [entry_of(id_, version, cleaned(event), micros(now), entries)])
    if EMBEDDED & {*differing}:
        embeddings.outdate(connection, key, [id_])
    elif "terms" in values:
        embeddings.renew(connection, key, id_)
    return after.memory


def forget(connection: Any, seen: Seen, every: Seen, ids: Sequence[int], now: datetime) -> list[int]:
    """Erase visible memories and damaged ones, within one transaction; return their ids, in order.

    Args:
        connection: a connection.
        seen: what the caller sees.
        every: all memories of the same owners; those that name a forgotten one name none from then on.
        ids: the memories.
        now: the present moment.
    """
    found = locked(connection, seen, ids)
    places = {id_: _place_of(seen, each) for id_, each in found.items()}
    # The owners are locked, so that no other writer changes these rows either.
    places |= damaged_places(connection, seen, [id_ for id_ in ids if id_ not in found])
    by_owner: dict[int, dict[int, Place]] = defaultdict(dict)
    for id_, place in sorted(places.items()):
        by_owner[place.owner][id_] = place
    for owner in sorted(by_owner):
        _erase(connection, seen, OwnerKey(seen.tenant, owner), by_owner[owner], micros(now))
    gone = {"tenant": seen.tenant, "ids": [*places]}
    for link, statement in _LINKED.items() if places else ():
        for (id_,) in connection.execute(_SQL[statement], gone).fetchall():
            change(connection, every, id_, event="UPDATE", now=now, fields={link: None})
    return [id_ for id_ in dict.fromkeys(ids) if id_ in places]


def drop_evidence(connection: Any, every: Seen, turns: Collection[str]) -> int:
    """Erase the excerpts of turns from all memories of an owner, within one transaction; return how many had one.

    Their time of change stays: `undo` finds the newest memories by it.
    """
    given = every.params(turns=[*turns])
    ids = [id_ for (id_,) in connection.execute(_SQL["resting_on"], given).fetchall()]
    found = locked(connection, every, ids)
    for id_, each in found.items():
        key, new = key_of(every, each.memory), attrs.evolve(each, memory=attrs.evolve(each.memory, evidence=""))
        version = take_versions(connection, key, 1)
        _set(connection, key, id_, {"evidence": "", "version": version, "checksum": checksum_of(new)})
    for owner in every.owners:
        for id_ in {*ids} - {*found}:
            _set(connection, OwnerKey(every.tenant, owner), id_, {"evidence": ""})
    return len(ids)


def footprint(connection: Any, tenant: int, ids: Iterable[int]) -> dict[str, int]:
    """Return how many rows hold content of memories, by place; see `MemoryStore.footprint`."""
    row = connection.execute(_SQL["footprint"], {"tenant": tenant, "ids": [*ids]}).fetchone()
    return dict(zip(PLACES, map(int, row), strict=True))


def touch(connection: Any, tenant: int, ids: Iterable[int], now: datetime) -> None:
    """Record that memories of a tenant were recalled."""
    connection.execute(_SQL["touch_memories"], {"tenant": tenant, "ids": [*ids], "now": micros(now)})


def key_of(seen: Seen, memory: Memory) -> OwnerKey:
    """Return the numbers of a visible memory's owner."""
    return OwnerKey(seen.tenant, next(number for number, owner in seen.owners.items() if owner == memory.owner))


def checksum_of(found: Stored) -> int:
    """Return the checksum of a memory."""
    values = values_of(found)
    return memory_checksum(found.memory.owner, [values[name] for name in CHECKED])


def entry_of(id_: int, version: int, event: str, at: int, changes: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Return an entry of a memory's history: the old and the new value of each field."""
    old, new = (told({name: each[place] for name, each in changes.items()}) for place in (0, 1))
    checksum = change_checksum(id_, event, at, old, new)
    return {"id": id_, "version": version, "event": event, "at": at, "old": old, "new": new, "checksum": checksum}


def add_history(connection: Any, tenant: int, entries: Sequence[Mapping[str, Any]]) -> None:
    """Add entries to the history of memories."""
    with connection.cursor() as cursor:
        cursor.executemany(_SQL["add_history"], [{"tenant": tenant} | dict(each) for each in entries])


def drop_traces(connection: Any, key: OwnerKey, ids: Sequence[int]) -> None:
    """Delete texts, history and embeddings of memories."""
    for name in ("drop_texts", "drop_history"):
        connection.execute(_SQL[name], {"tenant": key.tenant, "ids": [*ids]})
    embeddings.outdate(connection, key, ids)


def _derived(key: OwnerKey, new: Stored, differing: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that follow from the changed ones."""
    found: dict[str, Any] = {}
    if _LABELLED & {*differing}:
        found["labels"] = labels_of(new.memory)
    if SEARCHED & {*differing}:
        found["folded"] = folded_of(new.memory)
    if "terms" in values:
        found["words"] = words_of(key, new.terms)
    return found


def _set(connection: Any, key: OwnerKey, id_: int, settings: Mapping[str, Any]) -> None:
    """Set columns of a memory, in both tables."""
    texts = {name: value for name, value in settings.items() if name in {*TEXTS, "folded"}}
    short = {name: value for name, value in settings.items() if name not in texts}
    for statement, values in (("change_memory", short), ("change_texts", texts)):
        if values:
            # The names are names of columns of the table.
            names = ", ".join(f"{name} = %({name})s" for name in values)
            given = {**values, "tenant": key.tenant, "which": id_}
            connection.execute(_SQL[statement].format(settings=names), given)


def _place_of(seen: Seen, found: Stored) -> Place:
    memory = found.memory
    created_at = micros(memory.created_at or memory.updated_at)
    return Place(key_of(seen, memory).owner, created_at, found.length, bytes.fromhex(memory.uid))


def _erase(connection: Any, seen: Seen, key: OwnerKey, found: Mapping[int, Place], now: int) -> None:
    ids, length = [*found], sum(place.length for place in found.values())
    first = take_versions(connection, key, len(ids), live=-len(ids), length=-length)
    drop_traces(connection, key, ids)
    emptied = [
        _emptied(key, seen.owners[key.owner], version, without_content(id_, place.uid, place.created_at, now))
        for version, (id_, place) in enumerate(found.items(), first)
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_SQL["empty_memory"], emptied)
    entries = [entry_of(id_, version, "FORGET", now, {}) for version, id_ in enumerate(ids, first)]
    add_history(connection, key.tenant, entries)


def without_content(id_: int, uid: bytes, created_at: int, now: int) -> dict[str, Any]:
    """Return the values of a memory that was forgotten."""
    left = {"id": id_, "uid": uid, "created_at": created_at, "deleted_at": now, "updated_at": now}
    return dict(_NOTHING) | left


def _emptied(key: OwnerKey, owner: Owner, version: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stays of a forgotten memory."""
    checksum = memory_checksum(owner, [values[name] for name in CHECKED])
    named = {"id": values["id"], "now": values["deleted_at"]}
    return named | {"tenant": key.tenant, "version": version, "checksum": checksum}
