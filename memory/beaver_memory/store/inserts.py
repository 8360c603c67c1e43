"""Adds memories with their derived rows: words, labels, people and pending embeddings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import apsw

from beaver_memory.records import NewMemory, Owner
from beaver_memory.store.labels import PERSON, folded, narrow_labels
from beaver_memory.store.owners import OwnerBook
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import NEW_COLUMNS, new_row
from beaver_memory.store.versions import next_version
from beaver_memory.texts import cleaned, micros

WORDS_AT_ONCE = 5_000
"""Memories that the word index takes in one transaction; other writers may follow it."""

_ADD = f"INSERT INTO observations ({NEW_COLUMNS}) VALUES ({','.join('?' * len(NEW_COLUMNS.split(',')))})"  # noqa: S608
_ADD_WORDS = (
    "INSERT INTO observations_fts (rowid, title, narrative, facts, tags, keywords, people)"
    " SELECT id, title, narrative, facts, tags, keywords, people FROM observation_texts WHERE id BETWEEN ? AND ?"
)
_DROP_WORDS = (
    "INSERT INTO observations_fts (observations_fts, rowid, title, narrative, facts, tags, keywords, people)"
    " SELECT 'delete', id, title, narrative, facts, tags, keywords, people FROM observation_texts WHERE id = ?"
)
_QUEUE = (
    "INSERT INTO unembedded SELECT m.id, o.owner, o.created_at, o.id"
    " FROM models AS m CROSS JOIN observations AS o WHERE o.id BETWEEN ? AND ?"
)
_ADD_LABEL = "INSERT OR IGNORE INTO observation_labels (owner, label, created_at, memory) VALUES (?, ?, ?, ?)"
_DROP_LABEL = "DELETE FROM observation_labels WHERE owner = ? AND label = ? AND created_at = ? AND memory = ?"
_MEET = (
    "INSERT INTO people (owner, folded, name, mention_count, last_mentioned) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET mention_count = mention_count + excluded.mention_count,"
    " last_mentioned = max(last_mentioned, excluded.last_mentioned)"
)
_COUNT = (
    "INSERT INTO people (owner, folded, name, mention_count, last_mentioned)"
    " SELECT ?1, ?2, ?3, count(*), max(created_at) FROM observation_labels WHERE owner = ?1 AND label = ?4"
    " HAVING count(*) > 0"
    " ON CONFLICT DO UPDATE SET mention_count = excluded.mention_count, last_mentioned = excluded.last_mentioned"
)
_UNMEET = (
    "DELETE FROM people WHERE owner = ?1 AND folded = ?2"
    " AND NOT EXISTS (SELECT 1 FROM observation_labels WHERE owner = ?1 AND label = ?3)"
)


def add(connection: apsw.Connection, book: OwnerBook, items: Sequence[Analysed], now: datetime) -> list[int]:
    """Add memories; return their ids, in order. Runs within one transaction."""
    at = micros(now)
    version = next_version(connection, len(items))
    numbers = _numbers(connection, book, items)
    rows = map(new_row, items, numbers, range(version, version + len(items)), [at] * len(items))
    connection.executemany(_ADD, rows)
    # The transaction is the only writer, so the ids are consecutive.
    last = connection.last_insert_rowid()
    first = last - len(items) + 1
    connection.execute(_QUEUE, (first, last))
    _derive(connection, items, numbers, first, at)
    _count(connection, numbers)
    return list(range(first, last + 1))


def last_added(connection: apsw.Connection) -> int:
    """Return the number of the newest memory, 0 if there was none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM observations").get)


def last_indexed(connection: apsw.Connection) -> int:
    """Return the number of the last memory in the word index."""
    return int(connection.execute("SELECT last FROM indexed_words").get)


def index_words(connection: apsw.Connection, upto: int) -> int:
    """Add the next memories to the word index, within one transaction; return the number of the last one."""
    last = last_indexed(connection)
    if last >= upto:
        return last
    new = min(upto, last + WORDS_AT_ONCE)
    connection.execute("UPDATE indexed_words SET last = ?", (new,))
    add_words(connection, last + 1, new)
    return new


def add_words(connection: apsw.Connection, first: int, last: int) -> None:
    """Put memories into the word index, but those that it has not reached yet."""
    connection.execute(_ADD_WORDS, (first, last))


def drop_words(connection: apsw.Connection, id_: int) -> None:
    """Take a memory out of the word index, if it is there; its texts must be those that were put in."""
    connection.execute(_DROP_WORDS, (id_,))


def add_labels(connection: apsw.Connection, owner: int, id_: int, created_at: int, memory: NewMemory) -> None:
    """Put a memory into the side table."""
    connection.executemany(_ADD_LABEL, [(owner, label, created_at, id_) for label in _labels(memory)])


def drop_labels(connection: apsw.Connection, owner: int, id_: int, created_at: int, memory: NewMemory) -> None:
    """Take a memory out of the side table; `memory` has the labels that were put in."""
    connection.executemany(_DROP_LABEL, [(owner, label, created_at, id_) for label in _labels(memory)])


def count_people(connection: apsw.Connection, owner: int, names: Iterable[str]) -> None:
    """Set the counts of people from the side table; delete people that no memory mentions any more."""
    for key, name in {folded(name): cleaned(name) for name in names}.items():
        connection.execute(_COUNT, (owner, key, name, PERSON + key))
        connection.execute(_UNMEET, (owner, key, PERSON + key))


def _numbers(connection: apsw.Connection, book: OwnerBook, items: Sequence[Analysed]) -> list[int]:
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
        connection.executemany(_ADD_LABEL, labels)
    if people:
        connection.executemany(_MEET, [(*whom, *facts) for whom, facts in people.items()])


def _labels(memory: NewMemory) -> list[str]:
    return narrow_labels(memory.tags, memory.related_files, memory.related_people)


def _count(connection: apsw.Connection, numbers: Iterable[int]) -> None:
    counts = ((count, number) for number, count in Counter(numbers).items())
    connection.executemany("UPDATE owners SET live = live + ? WHERE id = ?", counts)
