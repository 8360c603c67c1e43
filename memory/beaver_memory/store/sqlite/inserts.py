"""Adds memories with their derived rows: words, labels, people and pending embeddings."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import apsw
import attrs

from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Kept, NewMemory, Owner
from beaver_memory.store.changes import view_of
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.fingerprint import free_uids, hash_of
from beaver_memory.store.people import PERSON, folded, narrow_labels
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import checksum_of_new, new_row
from beaver_memory.store.sqlite import update
from beaver_memory.store.sqlite.owners import OwnerKey, OwnerNumbers, TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.reads import visible
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.texts import cleaned, cleaned_all, micros, micros_or_none, moment_or_none, packed

_SQL = sqlite_queries("inserts")
_COUNT = _SQL["count_mentions"].format(checksum=_SQL["checksum_of_person"])
_Key = TypeVar("_Key")


def add(connection: apsw.Connection, book: OwnerNumbers, items: Sequence[Analysed], now: datetime) -> list[int]:
    """Add memories; return their ids, in order. Runs within one transaction."""
    at = micros(now)
    keys = _keys(connection, book, items)
    versions = _numbers(keys, lambda key, count: next_version(connection, key, count, more=count))
    ids = _numbers([tenant for tenant, _ in keys], lambda tenant, count: _ids(connection, tenant, count))
    uids = _uids(connection, items, keys)
    connection.executemany(_SQL["add_memory"], _rows(items, zip(keys, ids, versions, uids, strict=True), at))
    # The transaction is the only writer, so the rows are consecutive.
    last = connection.last_insert_rowid()
    connection.execute(_SQL["queue_embeddings"], (last - len(items) + 1, last))
    _derive(connection, items, keys, ids, at)
    return [*ids]


def add_labels(connection: apsw.Connection, owner: OwnerKey, id_: int, created_at: int, memory: NewMemory) -> None:
    """Put a memory into the side table."""
    connection.executemany(_SQL["add_label"], [(*owner, label, created_at, id_) for label in _labels(memory)])


def drop_labels(connection: apsw.Connection, owner: OwnerKey, id_: int, created_at: int, memory: NewMemory) -> None:
    """Take a memory out of the side table; `memory` has the labels that were put in."""
    connection.executemany(_SQL["drop_label"], [(*owner, label, created_at, id_) for label in _labels(memory)])


def count_people(connection: apsw.Connection, owner: OwnerKey, names: Iterable[str]) -> None:
    """Set the counts of people from the side table; delete people that no memory mentions any more."""
    for key, name in {folded(name): cleaned(name) for name in names}.items():
        connection.execute(_COUNT, (*owner, key, name, PERSON + key))
        connection.execute(_SQL["drop_unmentioned"], (*owner, key, PERSON + key))


def _keys(connection: apsw.Connection, book: OwnerNumbers, items: Sequence[Analysed]) -> list[OwnerKey]:
    """Return the key of each memory's owner. Neighbours mostly have the same owner: none is looked up twice."""
    keys: list[OwnerKey] = []
    known: dict[Owner, OwnerKey] = {}
    last, key = None, (0, 0)
    for item in items:
        owner = item.memory.owner
        if owner is not last:
            key = known.get(owner) or known.setdefault(owner, book.give(connection, owner))
            last = owner
        keys.append(key)
    return keys


def _ids(connection: apsw.Connection, tenant: int, count: int) -> int:
    """Take new ids of a tenant; return the first one."""
    return int(connection.execute(_SQL["take_ids"], (count, tenant)).get)


def _numbers(keys: Sequence[_Key], take: Callable[[_Key, int], int]) -> Sequence[int]:
    """Return a new number for each key; `take` takes consecutive ones for a key, and returns the first."""
    if keys.count(keys[0]) == len(keys):
        first = take(keys[0], len(keys))
        return range(first, first + len(keys))
    numbers = {key: itertools.count(take(key, count)) for key, count in Counter(keys).items()}
    return [next(numbers[key]) for key in keys]


def _uids(connection: apsw.Connection, items: Sequence[Analysed], keys: Sequence[OwnerKey]) -> list[bytes]:
    """Return a uid for each memory that no other memory of its tenant has."""
    given = [(key[0], bytes.fromhex(item.memory.uid)) for item, key in zip(items, keys, strict=True)]
    return free_uids(
        given, [each for each in given if each[1] and connection.execute(_SQL["has_uid"], each).fetchone()]
    )


def _rows(
    items: Sequence[Analysed], places: Iterable[tuple[OwnerKey, int, int, bytes]], at: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of the statement `add_memory` for each memory, given its owner, id, version and uid."""
    for item, ((tenant, owner), id_, version, uid) in zip(items, places, strict=True):
        row = new_row(item, owner, version, at, uid)
        yield tenant, id_, checksum_of_new(item.memory.owner, id_, row), *row


def _derive(
    connection: apsw.Connection, items: Sequence[Analysed], keys: Sequence[OwnerKey], ids: Sequence[int], at: int
) -> None:
    labels: list[tuple[int, int, str, int, int]] = []
    people: dict[tuple[int, int, str], tuple[str, int, int, int]] = {}
    for item, owner, id_ in zip(items, keys, ids, strict=True):
        new = item.memory
        if not (new.tags or new.related_people or new.related_files):
            continue
        created = at if new.created_at is None else micros(new.created_at)
        labels += [(*owner, label, created, id_) for label in _labels(new)]
        for key, name in {folded(name): cleaned(name) for name in new.related_people}.items():
            known, count, last, checksum = people.get((*owner, key), (name, 0, created, None))
            if checksum is None:
                checksum = texts_checksum(new.owner, key, name, "[]")
            people[*owner, key] = known, count + 1, max(last, created), checksum
    if labels:
        connection.executemany(_SQL["add_label"], labels)
    if people:
        connection.executemany(_SQL["mention_person"], [(*whom, *facts) for whom, facts in people.items()])


def _labels(memory: NewMemory) -> list[str]:
    return narrow_labels(memory.tags, memory.related_files, memory.related_people)


def remember(connection: apsw.Connection, book: OwnerNumbers, item: Analysed, now: datetime, *, mention: bool) -> Kept:
    """Add a memory unless the store has it, within one transaction; see `MemoryStore.remember`."""
    new = item.memory
    owner = book.give(connection, new.owner)
    there = _same(connection, new, owner, now)
    whose = TenantOwners(owner[0], {owner[1]: new.owner}, book.damage)
    filters = every_memory([new.owner], now)
    # A damaged memory is never shown, so it is not the same one.
    if there is None or not visible(connection, whose, [there[0]], filters):
        (id_,) = add(connection, book, [item], now)
        return Kept(id=id_, outcome="stored")
    id_, mentions, expires = there[0], there[1] + int(mention), moment_or_none(there[2])
    if mention or expires != _later(expires, new.expires_at):
        fields = {"mention_count": mentions, "expires_at": _later(expires, new.expires_at)}
        update.change(connection, whose, id_, filters, event="UPDATE", now=now, fields=fields)
    return Kept(id=id_, outcome="duplicate", mentions=mentions)


def supersede(
    connection: apsw.Connection,
    book: OwnerNumbers,
    item: Analysed,
    ids: Sequence[int],
    filters: Filters,
    *,
    at: datetime,
    now: datetime,
) -> Kept:
    """Add a memory and end others, within one transaction; see `MemoryStore.supersede`."""
    kept = remember(connection, book, item, now, mention=True)
    seen = view_of(item, filters)
    whose = book.those_of(connection, seen.view.owners if seen.view.stores else ())
    fields = {"valid_until": at, "superseded_by": kept.id}
    ended = tuple(
        id_
        for id_ in dict.fromkeys(ids)
        if id_ != kept.id
        and update.change(connection, whose, id_, seen, event="DELETE", now=now, fields=fields) is not None
    )
    return attrs.evolve(kept, superseded=ended)


def is_there(connection: apsw.Connection, book: OwnerNumbers, item: Analysed, now: datetime) -> bool:
    """Return whether `remember` would find a memory."""
    owner = book.find(connection, item.memory.owner)
    return owner is not None and _same(connection, item.memory, owner, now) is not None


def _same(connection: apsw.Connection, new: NewMemory, owner: OwnerKey, now: datetime) -> Any:
    """Return id, mentions and end of the same memory, found by its uid, else by its words."""
    named = {"tenant": owner[0], "owner": owner[1], "uid": bytes.fromhex(new.uid)}
    there = connection.execute(_SQL["same_uid"], named).fetchone() if new.uid else None
    return there or connection.execute(_SQL["same_memory"], _key(new, owner, now)).fetchone()


def _key(new: NewMemory, owner: OwnerKey, now: datetime) -> dict[str, object]:
    texts = ("title", "narrative", "agent", "scope", "project", "session")
    return {
        **{name: cleaned(getattr(new, name)) for name in texts},
        "facts": packed(cleaned_all(new.facts)),
        "tenant": owner[0],
        "owner": owner[1],
        "hash": bytes.fromhex(hash_of(new.title, new.facts)),
        "store": new.store.value,
        "valid_from": micros_or_none(new.valid_from),
        "valid_until": micros_or_none(new.valid_until),
        "expires_at": micros_or_none(new.expires_at),
        "now": micros(now),
    }


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two ends; `None` means never."""
    return None if one is None or other is None else max(one, other)
