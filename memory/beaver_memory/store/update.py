"""Changes and forgets memories."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw
import attrs

from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.filters import Filters
from beaver_memory.records import Memory, Owner
from beaver_memory.store import embeddings, sqlite_vec
from beaver_memory.store.fingerprint import hash_of
from beaver_memory.store.inserts import add_labels, count_people, drop_labels
from beaver_memory.store.queries import sqlite_queries
from beaver_memory.store.reads import visible
from beaver_memory.store.rows import ANALYSED, EMBEDDED, SEARCHED, clean, stored, told
from beaver_memory.store.versions import next_version
from beaver_memory.store.word_index import add_words, drop_words, last_indexed, scrub, words_of
from beaver_memory.texts import cleaned, micros

_SQL = sqlite_queries("update")

_FIXED = frozenset({"id", "owner", "hash", "token_count", "updated_at", "deleted_at"})
CHANGEABLE = frozenset(each.name for each in attrs.fields(Memory)) - _FIXED
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
    new, differing = _changed(old, fields)
    columns = _columns(connection, id_, new, differing, fields)
    if not columns:
        return old
    number = next(number for number, owner in owners.items() if owner == old.owner)
    new = attrs.evolve(new, updated_at=now)
    _store(connection, number, old, new, differing=differing, columns=columns)
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


def touch(connection: apsw.Connection, ids: Iterable[int], now: datetime) -> None:
    """Record that memories were recalled."""
    connection.executemany(_SQL["touch_memory"], [(micros(now), id_) for id_ in ids])


def _changed(old: Memory, fields: Mapping[str, Any]) -> tuple[Memory, list[str]]:
    given = {name: value for name, value in fields.items() if name not in {"terms", "length"}}
    unknown = sorted(given.keys() - CHANGEABLE)
    if unknown:
        raise TypeError(f"these fields cannot be changed: {', '.join(unknown)}")
    if given.get("created_at", old.created_at) is None:
        raise ValueError("created_at of a memory that is stored must be a datetime")
    new: Memory = clean(attrs.evolve(old, **given))
    differing = [name for name in given if getattr(new, name) != getattr(old, name)]
    if EMBEDDED & {*differing}:
        new = attrs.evolve(new, hash=hash_of(new.title, new.facts), token_count=estimate_tokens(new.text))
    return new, differing


def _columns(
    connection: apsw.Connection, id_: int, new: Memory, differing: Sequence[str], fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns that change, with their new values."""
    columns = {name: stored(name, getattr(new, name)) for name in differing}
    if ANALYSED & {*differing} and not {"terms", "length"} <= fields.keys():
        raise ValueError("a change of what a memory says comes with its terms and its length")
    if "terms" in fields:
        known = connection.execute(_SQL["terms"], (id_,)).fetchone()
        if known != (fields["terms"], fields["length"]):
            columns |= {"terms": fields["terms"], "length": fields["length"]}
    if EMBEDDED & {*differing}:
        columns |= {"hash": bytes.fromhex(new.hash), "token_count": new.token_count}
    return columns


def _store(
    connection: apsw.Connection,
    owner: int,
    old: Memory,
    new: Memory,
    *,
    differing: Sequence[str],
    columns: Mapping[str, Any],
) -> None:
    id_, changed = old.id, frozenset(differing)
    before, after = stored("created_at", old.created_at), stored("created_at", new.created_at)
    if changed & SEARCHED:
        drop_words(connection, id_)
    values = dict(columns) | {"version": next_version(connection), "updated_at": micros(new.updated_at)}
    # The names are names of columns of this table.
    settings = ", ".join(f"{name} = ?" for name in values)
    connection.execute(_SQL["change_memory"].format(settings=settings), (*values.values(), id_))
    if changed & SEARCHED:
        add_words(connection, id_, id_)
    if changed & _LABELLED:
        drop_labels(connection, owner, id_, before, old)
        add_labels(connection, owner, id_, after, new)
        count_people(connection, owner, (*old.related_people, *new.related_people))
    if before != after:
        embeddings.move(connection, owner, id_, before, after)
    if changed & EMBEDDED:
        embeddings.outdate(connection, owner, id_, after)
    elif "terms" in columns:
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
