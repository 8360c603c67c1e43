"""Stores embeddings, by model."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence

import apsw

from beaver_memory.store.bounds import LARGEST, bounded, usable
from beaver_memory.store.checksums import vector_checksum
from beaver_memory.store.protocol import VectorRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import text_of
from beaver_memory.store.sqlite.owners import Damage, OwnerKey, TenantOwners
from beaver_memory.store.sqlite.rows import rows_of, whole_memories
from beaver_memory.store.sqlite.versions import next_version
from beaver_memory.texts import cleaned, unpacked

_SQL = queries_of("sqlite", "embeddings")


def model_number(connection: apsw.Connection, name: str) -> int | None:
    """Return the number of a model, `None` if it was never used."""
    row = connection.execute(_SQL["find_model"], (cleaned(name),)).fetchone()
    return None if row is None else int(row[0])


def begin_model(connection: apsw.Connection, name: str) -> int:
    """Return the number of a model; for a new one, note that no memory has an embedding by it."""
    known = model_number(connection, name)
    if known is not None:
        return known
    connection.execute(_SQL["add_model"], (cleaned(name),))
    number = connection.last_insert_rowid()
    connection.execute(_SQL["queue_everything"], (number,))
    return number


def missing(
    connection: apsw.Connection, owners: TenantOwners, model: int, place: str | None, limit: int
) -> list[tuple[int, str]]:
    """Return ids and texts of the memories that `pending` counts, newest first."""
    (key,) = owners
    rows = rows_of(connection, owners, _SQL["unembedded"], (*key, model, place, bounded(limit)))
    return [(memory.id, memory.text) for memory in whole_memories(rows, owners.names, owners.damaged)]


def _text(title: bytes, narrative: bytes, facts: bytes) -> str:
    """Return the text of a memory; an empty text if a text is damaged."""
    try:
        return text_of(title.decode(), narrative.decode(), unpacked(facts.decode()))
    except (ValueError, AttributeError):
        return ""


def pending(connection: apsw.Connection, owner: OwnerKey, model: int | None, place: str | None) -> int:
    """Return how many memories of an owner, of all projects or of one, have no embedding by a model."""
    of_owner, of_project, given = (
        ("count_live_of_owner", "count_live_of_project", owner)
        if model is None
        else ("count_unembedded_of_owner", "count_unembedded_of_project", (*owner, model))
    )
    if place is None:
        return int(connection.execute(_SQL[of_owner], given).get or 0)
    return int(connection.execute(_SQL[of_project], (*given, place)).get)


def put(
    connection: apsw.Connection,
    owner: OwnerKey,
    model: str,
    vectors: Sequence[tuple[int, bytes]],
    texts: Mapping[int, str],
) -> None:
    """Store embeddings in place of earlier ones; skip memories that do not exist.

    Embeddings of a text that the memory no longer has are skipped too.
    """
    tenant, number = owner[0], begin_model(connection, model)
    for id_, data in vectors:
        live = connection.execute(_SQL["text_to_embed"], (*owner, id_)).fetchone() if 0 < id_ <= LARGEST else None
        if live is None or (id_ in texts and texts[id_] != _text(*live[1:])):
            continue
        connection.execute(_SQL["drop_vector"], (tenant, id_, number))
        checksum = vector_checksum(id_, cleaned(model), data)
        values = (*owner, number, id_, next_version(connection, owner), checksum, data)
        connection.execute(_SQL["add_vector"], values)
        connection.execute(_SQL["unqueue"], (*owner, number, live[0], id_))


def newer(connection: apsw.Connection, owners: TenantOwners, model: int, version: int, limit: int) -> list[VectorRow]:
    """Return the embeddings above a version, in order; note those that fail their checksums."""
    (key,) = owners
    found: list[VectorRow] = []
    rows = connection.execute(_SQL["new_vectors"], (*key, model, version, LARGEST))
    for id_, number, data, checksum, name in itertools.takewhile(lambda _: len(found) < limit, rows):
        if vector_checksum(id_, name, data) == checksum:
            found.append(VectorRow(id=id_, version=number, data=data))
        else:
            owners.damage.note("embedding", key[0], id_)
    return found


def of_memories(
    connection: apsw.Connection, tenant: int, model: str, ids: Iterable[int], damage: Damage
) -> dict[int, bytes]:
    """Return the embeddings of memories of a tenant by id; note those that fail their checksums."""
    found: dict[int, bytes] = {}
    name, number = cleaned(model), model_number(connection, model)
    for id_, data, checksum in connection.execute(_SQL["vectors_of"], (tenant, number, json.dumps(usable(ids)))):
        if vector_checksum(id_, name, data) == checksum:
            found[id_] = data
        else:
            damage.note("embedding", tenant, id_)
    return found


def last(connection: apsw.Connection, owner: OwnerKey, model: int) -> int:
    """Return the version of the newest embedding, 0 if there is none."""
    return connection.execute(_SQL["last_vector"], (*owner, model)).get or 0


def drop(connection: apsw.Connection, name: str) -> int:
    """Delete all embeddings by a model; return their number."""
    number = model_number(connection, name)
    if number is None:
        return 0
    connection.execute(_SQL["drop_vectors_of_model"], (number,))
    gone = connection.changes()
    connection.execute(_SQL["unqueue_model"], (number,))
    connection.execute(_SQL["drop_model"], (number,))
    return gone


def outdate(connection: apsw.Connection, owner: OwnerKey, id_: int, created_at: int) -> None:
    """Delete all embeddings of a memory whose text has changed."""
    connection.execute(_SQL["drop_vectors_of_memory"], (owner[0], id_))
    connection.execute(_SQL["queue_again"], (*owner, created_at, id_))


def renew(connection: apsw.Connection, owner: OwnerKey, id_: int) -> None:
    """Give the embeddings of a memory new versions: an index tells by the terms, which changed, what they embed."""
    tenant = owner[0]
    rows = connection.execute(_SQL["models_of_memory"], (tenant, id_)).fetchall()
    changes = [(next_version(connection, owner), tenant, id_, model) for (model,) in rows]
    connection.executemany(_SQL["set_vector_version"], changes)


def drop_of_memory(connection: apsw.Connection, tenant: int, id_: int) -> None:
    """Delete all embeddings of a memory."""
    connection.execute(_SQL["drop_vectors_of_memory"], (tenant, id_))


def erase(connection: apsw.Connection, owner: OwnerKey, id_: int, created_at: int) -> None:
    """Delete all embeddings of a forgotten memory."""
    connection.execute(_SQL["drop_vectors_of_memory"], (owner[0], id_))
    connection.execute(_SQL["unqueue_memory"], (*owner, created_at, id_))


def move(connection: apsw.Connection, owner: OwnerKey, id_: int, before: int, after: int) -> None:
    """Move a memory to another time in the queue of missing embeddings."""
    connection.execute(_SQL["move_in_queue"], (*owner, before, after, id_))
