"""Adds memories with their derived rows: words, labels, people and pending embeddings."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import apsw

from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.checksums import texts_checksum
from beaver_memory.store.fingerprint import free_uids
from beaver_memory.store.people import PERSON, folded, narrow_labels
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import checksum_of_new, new_row
from beaver_memory.store.sqlite.owners import OwnerKey, OwnerNumbers
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.texts import cleaned, micros

_SQL = queries_of("sqlite", "inserts")
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
