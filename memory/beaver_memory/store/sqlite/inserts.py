"""Adds memories with their derived rows: words, labels, people and pending embeddings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import apsw

from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.labels import PERSON, folded, narrow_labels
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import new_row
from beaver_memory.store.sqlite.owners import OwnerNumbers
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.texts import cleaned, micros

_SQL = sqlite_queries("inserts")


def add(connection: apsw.Connection, book: OwnerNumbers, items: Sequence[Analysed], now: datetime) -> list[int]:
    """Add memories; return their ids, in order. Runs within one transaction."""
    at = micros(now)
    version = next_version(connection, len(items))
    numbers = _numbers(connection, book, items)
    rows = map(new_row, items, numbers, range(version, version + len(items)), [at] * len(items))
    connection.executemany(_SQL["add_memory"], rows)
    # The transaction is the only writer, so the ids are consecutive.
    last = connection.last_insert_rowid()
    first = last - len(items) + 1
    connection.execute(_SQL["queue_embeddings"], (first, last))
    _derive(connection, items, numbers, first, at)
    _count(connection, numbers)
    return list(range(first, last + 1))


def add_labels(connection: apsw.Connection, owner: int, id_: int, created_at: int, memory: NewMemory) -> None:
    """Put a memory into the side table."""
    connection.executemany(_SQL["add_label"], [(owner, label, created_at, id_) for label in _labels(memory)])


def drop_labels(connection: apsw.Connection, owner: int, id_: int, created_at: int, memory: NewMemory) -> None:
    """Take a memory out of the side table; `memory` has the labels that were put in."""
    connection.executemany(_SQL["drop_label"], [(owner, label, created_at, id_) for label in _labels(memory)])


def count_people(connection: apsw.Connection, owner: int, names: Iterable[str]) -> None:
    """Set the counts of people from the side table; delete people that no memory mentions any more."""
    for key, name in {folded(name): cleaned(name) for name in names}.items():
        connection.execute(_SQL["count_mentions"], (owner, key, name, PERSON + key))
        connection.execute(_SQL["drop_unmentioned"], (owner, key, PERSON + key))


def _numbers(connection: apsw.Connection, book: OwnerNumbers, items: Sequence[Analysed]) -> list[int]:
    """Return the number of each memory's owner. Neighbours mostly have the same owner: none is looked up twice."""
    numbers: list[int] = []
    known: dict[Owner, int] = {}
    last, number = None, 0
    for item in items:
        owner = item.memory.owner
        if owner is not last:
            number = known.get(owner) or known.setdefault(owner, book.give(connection, owner))
            last = owner
        numbers.append(number)
    return numbers


def _derive(
    connection: apsw.Connection, items: Sequence[Analysed], numbers: Sequence[int], first: int, at: int
) -> None:
    labels: list[tuple[int, str, int, int]] = []
    people: dict[tuple[int, str], tuple[str, int, int]] = {}
    for id_, (item, owner) in enumerate(zip(items, numbers, strict=True), first):
        new = item.memory
        if not (new.tags or new.related_people or new.related_files):
            continue
        created = at if new.created_at is None else micros(new.created_at)
        labels += [(owner, label, created, id_) for label in _labels(new)]
        for key, name in {folded(name): cleaned(name) for name in new.related_people}.items():
            known, count, last = people.get((owner, key), (name, 0, created))
            people[owner, key] = known, count + 1, max(last, created)
    if labels:
        connection.executemany(_SQL["add_label"], labels)
    if people:
        connection.executemany(_SQL["mention_person"], [(*whom, *facts) for whom, facts in people.items()])


def _labels(memory: NewMemory) -> list[str]:
    return narrow_labels(memory.tags, memory.related_files, memory.related_people)


def _count(connection: apsw.Connection, numbers: Iterable[int]) -> None:
    counts = ((count, number) for number, count in Counter(numbers).items())
    connection.executemany(_SQL["count_live"], counts)
