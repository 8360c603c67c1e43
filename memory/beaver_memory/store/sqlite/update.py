"""Changes and forgets memories."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw
import attrs

from beaver_memory.filters import Filters
from beaver_memory.records import Memory, Owner
from beaver_memory.store.changes import changed, columns
from beaver_memory.store.rows import EMBEDDED, SEARCHED, stored, told
from beaver_memory.store.sqlite import embeddings, sqlite_vec
from beaver_memory.store.sqlite.inserts import add_labels, count_people, drop_labels
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.reads import visible
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.store.sqlite.word_index import add_words, drop_words, last_indexed, scrub, words_of
from beaver_memory.texts import cleaned, micros

_SQL = sqlite_queries("update")

_LABELLED = frozenset({"tags", "related_files", "related_people", "created_at"})


def change(
    connection: apsw.Connection,
    owners: Mapping[int, Owner],
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
    known = connection.execute(_SQL["terms"], (id_,)).fetchone() if "terms" in fields else None
    values = columns(new, differing, fields, known)
    if not values:
        return old
    number = next(number for number, owner in owners.items() if owner == old.owner)
    new = attrs.evolve(new, updated_at=now)
    _store(connection, number, old, new, differing=frozenset(differing), values=values)
    if differing:
        before = {name: getattr(old, name) for name in differing}
        after = {name: getattr(new, name) for name in differing}
        connection.execute(_SQL["add_history"], (id_, cleaned(event), micros(now), told(before), told(after)))
    return new


def forget(
    connection: apsw.Connection, owners: Mapping[int, Owner], ids: Sequence[int], filters: Filters, now: datetime
) -> list[int]:
    """Erase visible memories, within one transaction; return their ids, in order."""
    found = visible(connection, owners, ids, filters)
    numbers = {owner: number for number, owner in owners.items()}
    words: set[bytes] = set()
    indexed = last_indexed(connection)
    for memory in found.values():
        if memory.id <= indexed:
            words |= words_of(connection, memory)
        _erase(connection, numbers[memory.owner], memory, micros(now))
    scrub(connection, words)
    return [id_ for id_ in dict.fromkeys(ids) if id_ in found]


def touch(connection: apsw.Connection, tenant: str, ids: Iterable[int], now: datetime) -> None:
    """Record that memories of a tenant were recalled."""
    connection.executemany(_SQL["touch_memory"], [(micros(now), id_, cleaned(tenant)) for id_ in ids])


def _store(
    connection: apsw.Connection,
    owner: int,
    old: Memory,
    new: Memory,
    *,
    differing: frozenset[str],
    values: Mapping[str, Any],
) -> None:
    id_ = old.id
    before, after = stored("created_at", old.created_at), stored("created_at", new.created_at)
    if differing & SEARCHED:
        drop_words(connection, id_)
    settings = dict(values) | {"version": next_version(connection), "updated_at": micros(new.updated_at)}
    # The names are names of columns of this table.
    names = ", ".join(f"{name} = ?" for name in settings)
    connection.execute(_SQL["change_memory"].format(settings=names), (*settings.values(), id_))
    if differing & SEARCHED:
        add_words(connection, id_, id_)
    if differing & _LABELLED:
        drop_labels(connection, owner, id_, before, old)
        add_labels(connection, owner, id_, after, new)
        count_people(connection, owner, (*old.related_people, *new.related_people))
    if before != after:
        embeddings.move(connection, owner, id_, before, after)
    if differing & EMBEDDED:
        embeddings.outdate(connection, owner, id_, after)
    elif "terms" in values:
        embeddings.renew(connection, id_)


def _erase(connection: apsw.Connection, owner: int, memory: Memory, now: int) -> None:
    id_, created = memory.id, stored("created_at", memory.created_at)
    drop_words(connection, id_)
    drop_labels(connection, owner, id_, created, memory)
    embeddings.erase(connection, owner, id_, created)
    sqlite_vec.erase(connection, id_)
    connection.execute(_SQL["drop_archived"], (id_,))
    connection.execute(_SQL["empty_history"], (id_,))
    connection.execute(_SQL["add_history"], (id_, "FORGET", now, "{}", "{}"))
    connection.execute(_SQL["empty_memory"], (next_version(connection), now, now, id_))
    connection.execute(_SQL["count_one_less"], (owner,))
    count_people(connection, owner, memory.related_people)
