"""Counts the contents of a store, and finds damage in it."""

from pathlib import Path
from typing import Any

import apsw

from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.word_index import is_true
from beaver_toolkit.sqlite.connections import integrity_problems

_SQL = sqlite_queries("integrity")

_RULES = (
    ("wrong_counts_of_owners", "owners have wrong counts"),
    ("wrong_ids", "memories have ids that do not exist yet"),
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


def problems(connection: apsw.Connection, *, writable: bool = True) -> list[str]:
    """Return the problems of the store, one sentence each.

    Args:
        connection: a connection within a transaction.
        writable: whether it may write; the word index is compared with the memories only then.
    """
    damaged = [f"The file is damaged: {each}." for each in integrity_problems(connection)]
    if damaged:
        return damaged
    strays = len(connection.execute("PRAGMA foreign_key_check").fetchall())
    references = [f"{strays} rows refer to rows that do not exist."] if strays else []
    return [*references, *_broken_rules(connection), *(_word_problems(connection) if writable else ())]


def _counts(connection: apsw.Connection, query: str) -> dict[str, int]:
    rows: list[tuple[Any, ...]] = connection.execute(_SQL[query]).fetchall()
    return {str(name): int(count) for name, count in rows}


def _broken_rules(connection: apsw.Connection) -> list[str]:
    counts = ((connection.execute(_SQL[rule]).get, what) for rule, what in _RULES)
    return [f"{count} {what}." for count, what in counts if count]


def _word_problems(connection: apsw.Connection) -> list[str]:
    return [] if is_true(connection) else ["The word index does not match the memories."]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
