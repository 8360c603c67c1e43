"""Counts the contents of a store, and finds damage in it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory
from beaver_memory.store.checksums import vector_checksum
from beaver_memory.store.damaged_entries import RESTORE, broken_rule, damaged_memory, wrong_count
from beaver_memory.store.people import summary_of
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite import people
from beaver_memory.store.sqlite.owners import Damage, owners
from beaver_memory.store.sqlite.reads import change_of
from beaver_memory.store.sqlite.rows import each_row, parts_of, verify, whole_memory
from beaver_memory.store.sqlite.word_index import is_true
from beaver_toolkit.sqlite.connections import integrity_problems

_SQL = queries_of("sqlite", "integrity")

MOST_NAMED = 20
"""Damaged rows that are named; the others are counted."""

MOST_NAMED_FAULTS = 3
"""Faults of a damaged file that are named."""

_DAMAGED_FILE = (
    f"The file is damaged: {{}}. To do: {RESTORE}, or move it away, with its -wal and -shm files, to begin with an"
    " empty one."
)

_FAILURES = {
    "embedding": "An embedding of memory {id}{tenant} fails its checksum: the memory is found by its words only.",
    "person": "Person {id}{tenant} fails its checksum; its name is shown as memories spell it.",
    "summary": f"The summary of session {{id}}{{tenant}} fails its checksum and is not shown: {RESTORE}.",
    "history": f"An entry in the history of memory {{id}}{{tenant}} fails its checksum and is not shown: {RESTORE}.",
}

_RULES = (
    ("wrong_ids", "memories have ids that do not exist yet"),
    ("wrong_successors", "memories name successors that do not exist"),
    ("wrong_doubts", "memories are doubted by memories that do not exist"),
    ("wrong_versions", "memories have versions that do not exist yet"),
    ("wrong_twins", "versions are used twice"),
    ("wrong_embeddings", "embeddings do not belong to their memories"),
    ("wrong_labels", "labels do not belong to their memories"),
    ("wrong_queue", "memories are neither embedded nor waiting to be embedded, or are both"),
    ("wrong_word_index", "word indexes are ahead of the memories"),
    ("wrong_counts_of_people", "people have wrong counts"),
)


def stats(connection: apsw.Connection, path: Path) -> dict[str, Any]:
    """Return the counts of the store, by name."""
    by_store = _counts(connection, "count_by_store")
    return {
        "memories": sum(by_store.values()),
        "forgotten": connection.execute(_SQL["count_forgotten"]).get,
        "owners": connection.execute(_SQL["count_owners"]).get,
        "stores": by_store,
        "types": _counts(connection, "count_by_type"),
        "embeddings": _counts(connection, "count_by_model"),
        "bytes": sum(_size(path.with_name(path.name + ending)) for ending in ("", "-wal")),
    }


def problems(connection: apsw.Connection, damage: Damage, *, writable: bool = True, shift: int = 0) -> list[str]:
    """Return the problems of the store, one sentence each.

    Args:
        connection: a connection within a transaction.
        damage: notes the rows that fail their checksums.
        writable: whether it may write; the word index is compared with the memories only then.
        shift: the number that is added to the ids in the sentences.
    """
    if damaged := integrity_problems(connection):
        return [_DAMAGED_FILE.format("; ".join(damaged[:MOST_NAMED_FAULTS]))]
    strays = len(connection.execute("PRAGMA foreign_key_check").fetchall())
    references = [broken_rule(strays, "rows refer to rows that do not exist")] if strays else []
    words = _word_problems(connection) if writable else []
    counts = _wrong_counts(connection, damage)
    return [*references, *_failures(connection, damage, shift), *counts, *_broken_rules(connection), *words]


def problems_of_newest(connection: apsw.Connection, count: int, *, shift: int = 0) -> list[str]:
    """Return the problems of the newest rows of memories, and of the counts of owners, one sentence each."""
    failing = [*_failing(connection, "newest_rows", (count,))]
    return [*_named(connection, failing, shift), *_wrong_counts(connection, Damage())]


def newest_among(connection: apsw.Connection, count: int, fits: Callable[[Memory], bool]) -> Iterator[int]:
    """Yield the ids of those of the newest memories that fit. The rows must be whole."""
    known = owners(connection)
    parts = parts_of(known)
    for row in each_row(connection, _SQL["newest_memories"], (count,)):
        memory = whole_memory(row, known, parts)
        if fits(memory):
            yield memory.id


def count_rows(connection: apsw.Connection) -> int:
    """Return the number of rows of memories, also of forgotten ones."""
    return int(connection.execute(_SQL["count_rows"]).get)


def _failures(connection: apsw.Connection, damage: Damage, shift: int) -> list[str]:
    """Return a sentence for each row that fails its checksum, and note the row."""
    found: list[tuple[str, int, int | str]] = [
        *_failing(connection, "rows"),
        *_failing_embeddings(connection),
        *_failing_changes(connection),
        *_failing_people(connection),
        *_failing_summaries(connection),
    ]
    for kind, tenant, id_ in found:
        damage.note(kind, tenant, id_)
    return _named(connection, found, shift)


def _named(connection: apsw.Connection, found: Sequence[tuple[str, int, int | str]], shift: int) -> list[str]:
    tenants = {number: f" of tenant {name}" if name else "" for number, name in connection.execute(_SQL["tenants"])}
    named = [
        _failure(kind, id_ + shift if isinstance(id_, int) else id_, tenants.get(tenant, ""))
        for kind, tenant, id_ in found[:MOST_NAMED]
    ]
    return [*named, *([f"{len(found) - MOST_NAMED} more rows fail their checksums."] if found[MOST_NAMED:] else [])]


def _failure(kind: str, id_: int | str, tenant: str) -> str:
    return damaged_memory(int(id_), tenant) if kind == "memory" else _FAILURES[kind].format(id=id_, tenant=tenant)


def _wrong_counts(connection: apsw.Connection, damage: Damage) -> list[str]:
    """Return a sentence for each owner with more or fewer memories than were counted, and note the fewer."""
    known = owners(connection)
    rows: list[tuple[Any, ...]] = connection.execute(_SQL["wrong_counts_of_owners"]).fetchall()
    for tenant, number, counted, there in rows:
        if there < counted:
            damage.note("count", tenant, number)
    return [wrong_count(known[number], counted, there) for _, number, counted, there in rows]


def _failing(connection: apsw.Connection, query: str, params: Sequence[int] = ()) -> Iterator[tuple[str, int, int]]:
    parts = parts_of(owners(connection))
    for *row, tenant, id_ in each_row(connection, _SQL[query], params):
        try:
            verify(row, parts)
        except DamagedRow:
            yield "memory", tenant, id_


def _failing_embeddings(connection: apsw.Connection) -> Iterator[tuple[str, int, int]]:
    for tenant, id_, model, data, checksum in connection.execute(_SQL["embeddings"]):
        if vector_checksum(id_, model, data) != checksum:
            yield "embedding", tenant, id_


def _failing_changes(connection: apsw.Connection) -> Iterator[tuple[str, int, int]]:
    for tenant, id_, *entry, checksum in connection.execute(_SQL["changes"]):
        if change_of(id_, entry, checksum) is None:
            yield "history", tenant, id_


def _failing_people(connection: apsw.Connection) -> Iterator[tuple[str, int, str]]:
    known = owners(connection)
    for tenant, owner, *texts, checksum in connection.execute(_SQL["people"]):
        if not people.person_is_whole(known.get(owner), texts, checksum):
            yield "person", tenant, people.shown(texts[0])


def _failing_summaries(connection: apsw.Connection) -> Iterator[tuple[str, int, str]]:
    known = owners(connection)
    for tenant, owner, *row, checksum in connection.execute(_SQL["summaries"]):
        name = known.get(owner)
        if name is None or summary_of(name, row, checksum) is None:
            yield "summary", tenant, people.shown(row[1])


def _counts(connection: apsw.Connection, query: str) -> dict[str, int]:
    rows: list[tuple[Any, ...]] = connection.execute(_SQL[query]).fetchall()
    return {str(name): int(count) for name, count in rows}


def _broken_rules(connection: apsw.Connection) -> list[str]:
    counts = ((connection.execute(_SQL[rule]).get, what) for rule, what in _RULES)
    return [broken_rule(count, what) for count, what in counts if count]


def _word_problems(connection: apsw.Connection) -> list[str]:
    return [] if is_true(connection) else [f"The word index does not match the memories: {RESTORE}."]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
