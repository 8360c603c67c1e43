"""Stores memories of another store under their ids and versions."""

from collections.abc import Sequence
from typing import Any

from beaver_memory.records import Memory, Owner
from beaver_memory.store.postgres import embeddings
from beaver_memory.store.postgres.inserts import put_rows
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.rows import (
    OBSERVATION,
    OBSERVATION_TYPES,
    TEXT,
    TEXT_TYPES,
    Stored,
    folded_of,
    labels_of,
    row_of,
    values_of,
    with_checksum,
    words_of,
)
from beaver_memory.store.postgres.update import add_history, drop_traces, entry_of, without_content
from beaver_memory.store.postgres.versions import lock_owners
from beaver_memory.store.protocol import VectorRow
from beaver_memory.store.shared import MemoryCopy
from beaver_memory.texts import micros

_SQL = postgres_queries("restored")


def restore(connection: Any, key: OwnerKey, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
    """Store memories in place of earlier copies, within one transaction."""
    lock_owners(connection, key.tenant, [key.owner])
    ids = [each.row.id for each in copies]
    connection.execute(_SQL["raise_ids"], {"tenant": key.tenant, "next": max(ids) + 1})
    gone = connection.execute(_SQL["drop_memories"], {"tenant": key.tenant, "ids": ids}).fetchall()
    drop_traces(connection, key, ids)
    values = [_values(each, key, owner) for each in copies]
    live = [each for each in values if each["deleted_at"] is None]
    counts = {
        "version": max(each.row.version for each in copies),
        "live": len(live) - sum(was_live for was_live, _ in gone),
        "length": sum(each["length"] for each in live) - sum(length for _, length in gone),
    }
    connection.execute(_SQL["raise_counts"], {"tenant": key.tenant, "owner": key.owner} | counts)
    put_rows(connection, "observations", OBSERVATION, OBSERVATION_TYPES, [row_of(each, OBSERVATION) for each in values])
    put_rows(connection, "texts", TEXT, TEXT_TYPES, [row_of(each, TEXT) for each in live])
    add_history(connection, key.tenant, [entry for each in copies for entry in _entries(each)])


def restore_vectors(connection: Any, key: OwnerKey, model: tuple[int, str], rows: Sequence[VectorRow]) -> None:
    """Store embeddings under their versions, within one transaction."""
    given = {"tenant": key.tenant, "owner": key.owner, "version": max(row.version for row in rows)}
    connection.execute(_SQL["raise_counter"], given)
    embeddings.set_rows(connection, key, model, rows, {})


def _values(copy: MemoryCopy, key: OwnerKey, owner: Owner) -> dict[str, Any]:
    added = {"added_at": micros(copy.added_at)}
    places = {"tenant": key.tenant, "owner": key.owner, "version": copy.row.version}
    if copy.memory is None:
        at = micros(copy.added_at)
        empty: dict[str, Any] = {"labels": [], "words": []}
        return with_checksum(owner, without_content(copy.row.id, copy.row.uid, at, at)) | added | places | empty
    return with_checksum(owner, _content(copy, copy.memory, key)) | added | places


def _content(copy: MemoryCopy, memory: Memory, key: OwnerKey) -> dict[str, Any]:
    return {
        **values_of(Stored(memory, copy.row.terms, copy.row.length)),
        "labels": labels_of(memory),
        "words": words_of(key, copy.row.terms),
        "folded": folded_of(memory),
    }


def _entries(copy: MemoryCopy) -> list[dict[str, Any]]:
    """Return the entries of a memory's history; each has a number of its own below the memory's version."""
    first = copy.row.version - len(copy.history) + 1
    return [
        entry_of(copy.row.id, version, each.event, micros(each.at), {n: (each.old[n], each.new[n]) for n in each.old})
        for version, each in enumerate(copy.history, first)
    ]
