"""Changes and forgets memories."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw
import attrs

from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Memory, Owner
from beaver_memory.store.changes import changed, columns
from beaver_memory.store.checksums import change_checksum
from beaver_memory.store.fingerprint import UID_LENGTH, new_uid
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import EMBEDDED, SEARCHED, checksum_of, checksum_of_forgotten, stored, told
from beaver_memory.store.sqlite import embeddings, sqlite_vec
from beaver_memory.store.sqlite.inserts import add_labels, count_people, drop_labels
from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.reads import damaged_places, visible
from beaver_memory.store.sqlite.rows import fetched
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.store.sqlite.word_index import (
    add_words,
    drop_words,
    last_indexed,
    rebuild_words,
    row_of,
    scrub,
    words_of,
)
from beaver_memory.texts import cleaned, micros

_SQL = queries_of("sqlite", "update")

_LABELLED = frozenset({"tags", "related_files", "related_people", "created_at"})
_LINKED = {"superseded_by": "predecessors", "doubted_by": "doubted"}
"""The statements that find the memories which name others, by the field in which they do."""

_Left = tuple[int, bytes, int, int]
"""The parts that stay of a forgotten memory: its id, its uid, its moment, and the moment at which it was forgotten."""


def change(
    connection: apsw.Connection,
    owners: TenantOwners,
    id_: int,
    filters: Filters,
    *,
    event: str,
    now: datetime,
    fields: Mapping[str, Any],
) -> Memory | None:
    """Change fields of a visible memory, within one transaction; see `MemoryStore.change`."""
    old = visible(connection, owners, [id_], filters).get(id_)
    if old is None:
        return None
    new, differing = changed(old, fields)
    known = connection.execute(_SQL["terms"], (owners.tenant, id_)).get
    values = columns(new, differing, fields, known)
    if not values:
        return old
    key = next(key for key in owners if owners.names[key[1]] == old.owner)
    new = attrs.evolve(new, updated_at=now)
    terms, length = values.get("terms", known[0]), values.get("length", known[1])
    values = values | {"checksum": checksum_of(new, length, terms)}
    _store(connection, key, old, new, differing=frozenset(differing), values=values)
    if differing:
        before = told({name: getattr(old, name) for name in differing})
        after = told({name: getattr(new, name) for name in differing})
        _note(connection, key[0], id_, (cleaned(event), micros(now), before, after))
    return new


def forget(
    connection: apsw.Connection, owners: TenantOwners, ids: Sequence[int], filters: Filters, now: datetime
) -> list[int]:
    """Erase visible memories, within one transaction; return their ids, in order."""
    found = visible(connection, owners, ids, filters)
    keys = {owners.names[key[1]]: key for key in owners}
    words: set[bytes] = set()
    indexed = last_indexed(connection)
    for memory in found.values():
        if row_of(connection, owners.tenant, memory.id) <= indexed:
            words |= words_of(connection, memory)
        _erase(connection, keys[memory.owner], memory, micros(now))
    scrub(connection, words)
    gone = {*found, *_forget_damaged(connection, owners, [id_ for id_ in ids if id_ not in found], filters, now)}
    _release(connection, owners, gone, now)
    return [id_ for id_ in dict.fromkeys(ids) if id_ in gone]


def _release(connection: apsw.Connection, owners: TenantOwners, gone: Collection[int], now: datetime) -> None:
    """Let no memory name a forgotten one."""
    every = every_memory(owners.names.values(), now)
    named = (owners.tenant, json.dumps([*gone]))
    for link, statement in _LINKED.items():
        linked: list[tuple[Any, ...]] = connection.execute(_SQL[statement], named).fetchall()
        for (id_,) in linked:
            change(connection, owners, id_, every, event="UPDATE", now=now, fields={link: None})


def resting_on(connection: apsw.Connection, owners: TenantOwners, turns: Collection[str]) -> list[int]:
    """Return the memories of owners that have an excerpt of a turn, without those that cannot be read."""
    named = json.dumps([*turns])
    found = (row for key in owners for row in fetched(connection, owners, _SQL["resting_on"], (*key, named)))
    return [int(id_) for (id_,) in found]


def drop_evidence(connection: apsw.Connection, owners: TenantOwners, ids: Sequence[int], every: Filters) -> None:
    """Erase the excerpts of memories, damaged ones too, within one transaction.

    Their time of change stays: `undo` finds the newest memories by it.
    """
    found = visible(connection, owners, ids, every)
    for id_ in {*ids} - {*found}:
        connection.execute(_SQL["change_memory"].format(settings="evidence = ''"), (owners.tenant, id_))
    keys = {owners.names[key[1]]: key for key in owners}
    for id_, old in found.items():
        terms, length = connection.execute(_SQL["terms"], (owners.tenant, id_)).get
        new = attrs.evolve(old, evidence="")
        values = {"evidence": "", "checksum": checksum_of(new, length, terms)}
        _store(connection, keys[old.owner], old, new, differing=frozenset({"evidence"}), values=values)


def footprint(connection: apsw.Connection, tenant: int, ids: Iterable[int]) -> dict[str, int]:
    """Return how many rows hold content of memories, by place; see `MemoryStore.footprint`."""
    rows: list[tuple[Any, ...]] = connection.execute(
        _SQL["footprint"], {"tenant": tenant, "ids": json.dumps([*ids])}
    ).fetchall()
    return {str(place): int(count) for place, count in rows}


def _forget_damaged(
    connection: apsw.Connection, owners: TenantOwners, ids: Sequence[int], filters: Filters, now: datetime
) -> list[int]:
    """Erase memories that fail their checksums; return their ids."""
    found = damaged_places(connection, owners, ids, filters)
    uids = {id_: _uid_in_index(connection, owners.tenant, id_) for id_ in found}
    for id_, (key, created) in found.items():
        _erase_damaged(connection, key, owners.names[key[1]], (id_, uids[id_], created, micros(now)))
    if found:
        rebuild_words(connection)
    return [*found]


def touch(connection: apsw.Connection, tenant: int, ids: Iterable[int], now: datetime) -> None:
    """Record that memories of a tenant were recalled."""
    connection.executemany(_SQL["touch_memory"], [(micros(now), tenant, id_) for id_ in ids])


def _store(
    connection: apsw.Connection,
    owner: OwnerKey,
    old: Memory,
    new: Memory,
    *,
    differing: frozenset[str],
    values: Mapping[str, Any],
) -> None:
    id_, tenant = old.id, owner[0]
    before, after = stored("created_at", old.created_at), stored("created_at", new.created_at)
    if differing & SEARCHED:
        drop_words(connection, tenant, id_)
    settings = dict(values) | {"version": next_version(connection, owner), "updated_at": micros(new.updated_at)}
    # The names are names of columns of this table.
    names = ", ".join(f"{name} = ?" for name in settings)
    connection.execute(_SQL["change_memory"].format(settings=names), (*settings.values(), tenant, id_))
    if differing & SEARCHED:
        add_words(connection, tenant, id_)
    if differing & _LABELLED:
        drop_labels(connection, owner, id_, before, old)
        add_labels(connection, owner, id_, after, new)
        count_people(connection, owner, (*old.related_people, *new.related_people))
    if before != after:
        embeddings.move(connection, owner, id_, before, after)
    if differing & EMBEDDED:
        embeddings.outdate(connection, owner, id_, after)
    elif "terms" in values:
        embeddings.renew(connection, owner, id_)


def _note(connection: apsw.Connection, tenant: int, id_: int, entry: tuple[str, int, str, str]) -> None:
    """Add an entry to the history of a memory: its event, moment, old and new values."""
    event, at, old, new = entry
    checksum = change_checksum(id_, event, at, old, new)
    connection.execute(_SQL["add_history"], (tenant, id_, event, at, checksum, old, new))


def _uid_in_index(connection: apsw.Connection, tenant: int, id_: int) -> bytes:
    """Return the uid of a damaged memory as the index has it; a new one if the index does not have the memory."""
    found = connection.execute(_SQL["uid_in_index"], (tenant, row_of(connection, tenant, id_))).get
    return found if isinstance(found, bytes) and len(found) == UID_LENGTH else new_uid()


def _erase_damaged(connection: apsw.Connection, key: OwnerKey, owner: Owner, memory: _Left) -> None:
    """Erase a damaged memory without reading its row."""
    id_, uid, created, _ = memory
    # The entries of a damaged row in the indexes are not those that SQLite would delete.
    connection.execute(_SQL["renew_indexes"])
    connection.execute(_SQL["drop_labels_of_memory"], (*key, id_))
    connection.execute(_SQL["unqueue_memory"], (*key, id_))
    settings = "owner = ?, uid = ?, created_at = ?"
    connection.execute(_SQL["change_memory"].format(settings=settings), (key[1], uid, created, key[0], id_))
    _empty(connection, key, owner, memory)
    connection.execute(_SQL["count_mentions_again"], key)
    connection.execute(_SQL["drop_unmentioned_people"], key)


def _erase(connection: apsw.Connection, owner: OwnerKey, memory: Memory, now: int) -> None:
    tenant, id_, created = owner[0], memory.id, stored("created_at", memory.created_at)
    drop_words(connection, tenant, id_)
    drop_labels(connection, owner, id_, created, memory)
    embeddings.erase(connection, owner, id_, created)
    _empty(connection, owner, memory.owner, (id_, stored("uid", memory.uid), created, now))
    count_people(connection, owner, memory.related_people)


def _empty(connection: apsw.Connection, key: OwnerKey, owner: Owner, memory: _Left) -> None:
    """Erase the content of a memory."""
    id_, _, _, now = memory
    tenant = key[0]
    embeddings.drop_of_memory(connection, tenant, id_)
    sqlite_vec.erase(connection, tenant, id_)
    connection.execute(_SQL["empty_history"], (tenant, id_))
    _note(connection, tenant, id_, ("FORGET", now, "{}", "{}"))
    checksum = checksum_of_forgotten(owner, *memory)
    version = next_version(connection, key, more=-1)
    connection.execute(_SQL["empty_memory"], (version, checksum, now, now, tenant, id_))
