"""Stores embeddings, by model."""

from collections.abc import Mapping, Sequence

import apsw

from beaver_memory.store.protocol import VectorRow
from beaver_memory.store.reads import LARGEST, bounded
from beaver_memory.store.rows import text_of
from beaver_memory.store.versions import next_version
from beaver_memory.texts import cleaned, unpacked

_MISSING = (
    "SELECT o.id, o.title, o.narrative, o.facts FROM unembedded AS u CROSS JOIN observations AS o ON o.id = u.memory"
    " WHERE u.model = ? AND u.owner = ? ORDER BY u.created_at DESC, u.memory DESC LIMIT ?"
)
_LIVE = "SELECT created_at, title, narrative, facts FROM observations WHERE id = ? AND owner = ? AND deleted_at IS NULL"
_VECTORS = (
    "SELECT memory, version, data FROM observation_embeddings INDEXED BY observation_embeddings_by_owner"
    " WHERE model = ? AND owner = ? AND version > ? ORDER BY version LIMIT ?"
)
_LAST = (
    "SELECT version FROM observation_embeddings INDEXED BY observation_embeddings_by_owner"
    " WHERE model = ? AND owner = ? ORDER BY version DESC LIMIT 1"
)

_QUEUED = "model IN (SELECT id FROM models) AND owner = ? AND created_at = ? AND memory = ?"


def model_number(connection: apsw.Connection, name: str) -> int | None:
    """Return the number of a model, `None` if it was never used."""
    row = connection.execute("SELECT id FROM models WHERE name = ?", (cleaned(name),)).fetchone()
    return None if row is None else int(row[0])


def begin_model(connection: apsw.Connection, name: str) -> int:
    """Return the number of a model; for a new one, note that no memory has an embedding by it."""
    known = model_number(connection, name)
    if known is not None:
        return known
    connection.execute("INSERT INTO models (name) VALUES (?)", (cleaned(name),))
    number = connection.last_insert_rowid()
    connection.execute(
        "INSERT INTO unembedded SELECT ?, owner, created_at, id FROM observations WHERE deleted_at IS NULL", (number,)
    )
    return number


def missing(connection: apsw.Connection, owner: int, model: int, limit: int) -> list[tuple[int, str]]:
    """Return ids and texts of memories that have no embedding by a model, newest first."""
    rows = connection.execute(_MISSING, (model, owner, bounded(limit)))
    return [(id_, _text(*prose)) for id_, *prose in rows]


def _text(title: str, narrative: str, facts: str) -> str:
    return text_of(title, narrative, unpacked(facts))


def pending(connection: apsw.Connection, owner: int | None, model: int | None) -> int:
    """Return how many memories have no embedding by a model, of one owner or of all."""
    if model is None:
        sql = "SELECT coalesce(sum(live), 0) FROM owners WHERE ?1 IS NULL OR id = ?1"
        return int(connection.execute(sql, (owner,)).get)
    sql = "SELECT count(*) FROM unembedded WHERE model = ?"
    given: tuple[int, ...] = (model,)
    if owner is not None:
        sql, given = f"{sql} AND owner = ?", (*given, owner)
    return int(connection.execute(sql, given).get)


def put(
    connection: apsw.Connection,
    owner: int,
    model: int,
    vectors: Sequence[tuple[int, bytes]],
    texts: Mapping[int, str],
) -> None:
    """Store embeddings in place of earlier ones; skip memories that do not exist.

    Embeddings of a text that the memory no longer has are skipped too.
    """
    for id_, data in vectors:
        live = connection.execute(_LIVE, (id_, owner)).fetchone() if 0 < id_ <= LARGEST else None
        if live is None or (id_ in texts and texts[id_] != _text(*live[1:])):
            continue
        connection.execute("DELETE FROM observation_embeddings WHERE memory = ? AND model = ?", (id_, model))
        connection.execute(
            "INSERT INTO observation_embeddings (version, memory, model, owner, data) VALUES (?, ?, ?, ?, ?)",
            (next_version(connection), id_, model, owner, data),
        )
        connection.execute(
            "DELETE FROM unembedded WHERE model = ? AND owner = ? AND created_at = ? AND memory = ?",
            (model, owner, live[0], id_),
        )


def newer(connection: apsw.Connection, owner: int, model: int, version: int, limit: int) -> list[VectorRow]:
    """Return the embeddings above a version, in order."""
    rows = connection.execute(_VECTORS, (model, owner, version, bounded(limit)))
    return [VectorRow(id=id_, version=number, data=data) for id_, number, data in rows]


def last(connection: apsw.Connection, owner: int, model: int) -> int:
    """Return the version of the newest embedding, 0 if there is none."""
    row = connection.execute(_LAST, (model, owner)).fetchone()
    return 0 if row is None else int(row[0])


def drop(connection: apsw.Connection, name: str) -> int:
    """Delete all embeddings by a model; return their number."""
    number = model_number(connection, name)
    if number is None:
        return 0
    connection.execute("DELETE FROM observation_embeddings WHERE model = ?", (number,))
    gone = connection.changes()
    connection.execute("DELETE FROM unembedded WHERE model = ?", (number,))
    connection.execute("DELETE FROM models WHERE id = ?", (number,))
    return gone


def outdate(connection: apsw.Connection, owner: int, id_: int, created_at: int) -> None:
    """Delete all embeddings of a memory whose text has changed."""
    connection.execute("DELETE FROM observation_embeddings WHERE memory = ?", (id_,))
    connection.execute("INSERT OR IGNORE INTO unembedded SELECT id, ?, ?, ? FROM models", (owner, created_at, id_))


def renew(connection: apsw.Connection, id_: int) -> None:
    """Give the embeddings of a memory new versions: an index tells by the terms, which changed, what they embed."""
    rows = connection.execute("SELECT version FROM observation_embeddings WHERE memory = ?", (id_,)).fetchall()
    changes = [(next_version(connection), version) for (version,) in rows]
    connection.executemany("UPDATE observation_embeddings SET version = ? WHERE version = ?", changes)


def erase(connection: apsw.Connection, owner: int, id_: int, created_at: int) -> None:
    """Delete all embeddings of a forgotten memory."""
    connection.execute("DELETE FROM observation_embeddings WHERE memory = ?", (id_,))
    connection.execute(f"DELETE FROM unembedded WHERE {_QUEUED}", (owner, created_at, id_))  # noqa: S608


def move(connection: apsw.Connection, owner: int, id_: int, before: int, after: int) -> None:
    """Move a memory to another time in the queue of missing embeddings."""
    connection.execute(f"UPDATE unembedded SET created_at = ? WHERE {_QUEUED}", (after, owner, before, id_))  # noqa: S608
