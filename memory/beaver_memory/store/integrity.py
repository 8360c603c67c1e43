"""Counts the contents of a store, and finds damage in it."""

from pathlib import Path
from typing import Any

import apsw

_FORGOTTEN = "SELECT count(*) FROM observations WHERE deleted_at IS NOT NULL"
_BY_STORE = "SELECT store, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY store"
_BY_TYPE = "SELECT type, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY type"
_BY_MODEL = (
    "SELECT m.name, count(e.version) FROM models AS m LEFT JOIN observation_embeddings AS e ON e.model = m.id"
    " GROUP BY m.id"
)

_OWNERS = (
    "SELECT count(*) FROM owners AS w WHERE live <>"
    " (SELECT count(*) FROM observations AS o WHERE o.owner = w.id AND o.deleted_at IS NULL)"
)
_VERSIONS = "SELECT count(*) FROM observations WHERE version > (SELECT value FROM counter)"
_TWICE = "SELECT count(*) FROM (SELECT version FROM observations GROUP BY version HAVING count(*) > 1)"
_EMBEDDINGS = (
    "SELECT count(*) FROM observation_embeddings AS e JOIN observations AS o ON o.id = e.memory"
    " WHERE o.deleted_at IS NOT NULL OR o.owner <> e.owner OR e.version > (SELECT value FROM counter)"
)
_LABELS = (
    "SELECT count(*) FROM observation_labels AS l LEFT JOIN observations AS o ON o.id = l.memory"
    " WHERE o.id IS NULL OR o.deleted_at IS NOT NULL OR o.owner <> l.owner OR o.created_at <> l.created_at"
)
_WAITING = (
    "SELECT count(*) FROM models AS m CROSS JOIN observations AS o WHERE o.deleted_at IS NULL AND"
    " (SELECT count(*) FROM unembedded AS u WHERE u.model = m.id AND u.owner = o.owner"
    " AND u.created_at = o.created_at AND u.memory = o.id)"
    " + (SELECT count(*) FROM observation_embeddings AS e WHERE e.model = m.id AND e.memory = o.id) <> 1"
)
_PEOPLE = (
    "SELECT count(*) FROM people AS p WHERE mention_count <>"
    " (SELECT count(*) FROM observation_labels AS l WHERE l.owner = p.owner AND l.label = 'person:' || p.folded)"
)
_AHEAD = "SELECT count(*) FROM indexed_words WHERE last > (SELECT coalesce(max(id), 0) FROM observations)"
_RULES = (
    (_OWNERS, "owners have wrong counts"),
    (_VERSIONS, "memories have versions that do not exist yet"),
    (_TWICE, "versions are used twice"),
    (_EMBEDDINGS, "embeddings do not belong to their memories"),
    (_LABELS, "labels do not belong to their memories"),
    (_WAITING, "memories are neither embedded nor waiting to be embedded, or are both"),
    (_AHEAD, "word indexes are ahead of the memories"),
    (_PEOPLE, "people have wrong counts"),
)


def stats(connection: apsw.Connection, path: Path) -> dict[str, Any]:
    """Return the counts of the store, by name."""
    by_store = _counts(connection, _BY_STORE)
    return {
        "memories": sum(by_store.values()),
        "forgotten": connection.execute(_FORGOTTEN).get,
        "owners": connection.execute("SELECT count(*) FROM owners").get,
        "stores": by_store,
        "types": _counts(connection, _BY_TYPE),
        "embeddings": _counts(connection, _BY_MODEL),
        "bytes": sum(_size(path.with_name(path.name + ending)) for ending in ("", "-wal")),
    }


def problems(connection: apsw.Connection) -> list[str]:
    """Return the problems of the store, one sentence each."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)").fetchall()]
    damaged = [f"The file is damaged: {each}." for each in found if each != "ok"]
    if damaged:
        return damaged
    strays = len(connection.execute("PRAGMA foreign_key_check").fetchall())
    references = [f"{strays} rows refer to rows that do not exist."] if strays else []
    return [*references, *_broken_rules(connection), *_word_problems(connection)]


def _counts(connection: apsw.Connection, sql: str) -> dict[str, int]:
    rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    return {str(name): int(count) for name, count in rows}


def _broken_rules(connection: apsw.Connection) -> list[str]:
    counts = ((connection.execute(sql).get, what) for sql, what in _RULES)
    return [f"{count} {what}." for count, what in counts if count]


def _word_problems(connection: apsw.Connection) -> list[str]:
    try:
        connection.execute("INSERT INTO observations_fts (observations_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        return ["The word index does not match the memories."]
    return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
