"""Stores embeddings, by model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from beaver_memory.store.bounds import bounded, usable
from beaver_memory.store.checksums import vector_checksum
from beaver_memory.store.postgres.driver import HalfVector
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.versions import take_vector_versions
from beaver_memory.store.protocol import VectorRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import text_of
from beaver_memory.texts import cleaned, unpacked

_SQL = queries_of("postgres", "embeddings")

MOST_VALUES = 16_000
"""Values that a `halfvec` holds."""

_HEAD = 4
"""Bytes before the values of a `halfvec`."""


class ModelNumbers:
    """Finds the numbers of models and caches them, since they never change. Thread-safe."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, connection: Any, name: str) -> int:
        """Return the number of a model, 0 if it was never used."""
        known = self._numbers.get(name)
        if known is None:
            row = connection.execute(_SQL["find_model"], {"name": cleaned(name)}).fetchone()
            if row is None:
                return 0
            known = self._numbers[name] = int(row[0])
        return known

    def give(self, connection: Any, name: str) -> int:
        """Return the number of a model, a new one if it has none. The connection has no transaction."""
        while not (known := self.number(connection, name)):
            connection.execute(_SQL["add_model"], {"name": cleaned(name)})
        return known


def missing(connection: Any, key: OwnerKey, model: int, place: str | None, limit: int) -> list[tuple[int, str]]:
    """Return ids and texts of the memories that `pending` counts, newest first."""
    # So many are missing: the search for them ends when it has found all of them.
    most = min(bounded(limit), pending(connection, key, model, place))
    given = {"tenant": key.tenant, "owner": key.owner, "model": model, "project": place, "limit": most}
    rows = connection.execute(_SQL["unembedded"], given) if most > 0 else ()
    return [(id_, text_of(title, narrative, unpacked(facts))) for id_, title, narrative, facts in rows]


def pending(connection: Any, key: OwnerKey, model: int, place: str | None) -> int:
    """Return how many memories of an owner, of all projects or of one, have no embedding by a model."""
    given = {"tenant": key.tenant, "owner": key.owner, "model": model, "project": place}
    row = connection.execute(_SQL["count_unembedded_of_owner"], given).fetchone()
    # The count of the owner costs nothing, and mostly nothing is missing.
    if place is not None and row and row[0]:
        row = connection.execute(_SQL["count_unembedded_of_project"], given).fetchone()
    return int(row[0]) if row else 0


def put(
    connection: Any,
    key: OwnerKey,
    model: tuple[int, str],
    vectors: Sequence[tuple[int, bytes]],
    texts: Mapping[int, str],
) -> None:
    """Store embeddings in place of earlier ones; skip memories that do not exist.

    Embeddings of a text that the memory no longer has are skipped too. Runs within one transaction.
    """
    first = take_vector_versions(connection, key, len(vectors))
    rows = [VectorRow(id=id_, version=version, data=data) for version, (id_, data) in enumerate(vectors, first)]
    set_rows(connection, key, model, rows, texts)


def set_rows(
    connection: Any, key: OwnerKey, model: tuple[int, str], vectors: Sequence[VectorRow], texts: Mapping[int, str]
) -> None:
    """Store embeddings under versions that are taken, as `put` does."""
    number, name = model
    given = {"tenant": key.tenant, "owner": key.owner, "model": number, "ids": usable(row.id for row in vectors)}
    live = {id_: text_of(a, b, unpacked(c)) for id_, a, b, c in connection.execute(_SQL["texts_to_embed"], given)}
    kept = {row.id: row for row in vectors if row.id in live and texts.get(row.id, live[row.id]) == live[row.id]}
    known = {id_ for (id_,) in connection.execute(_SQL["embedded_memories"], given)}
    with connection.cursor() as cursor:
        rows = (
            given
            | {"id": each.id, "version": each.version, "checksum": vector_checksum(each.id, name, each.data)}
            | _columns(each.data)
            for each in kept.values()
        )
        cursor.executemany(_SQL["set_vector"], [*rows])
    _count(connection, key, number, len(kept.keys() - known))


def newer(connection: Any, key: OwnerKey, model: tuple[int, str], version: int, limit: int) -> list[VectorRow]:
    """Return the embeddings above a version, in order, without those that fail their checksum."""
    number, name = model
    given = {"tenant": key.tenant, "owner": key.owner, "model": number, "after": version, "limit": bounded(limit)}
    return whole(connection.execute(_SQL["new_vectors"], given, binary=True), name)


def of_memories(connection: Any, tenant: int, model: tuple[int, str], ids: Sequence[int]) -> dict[int, bytes]:
    """Return the embeddings of memories of a tenant by id, without those that fail their checksum."""
    given = {"tenant": tenant, "model": model[0], "ids": [*ids]}
    rows = connection.execute(_SQL["vectors_of"], given, binary=True)
    return {row.id: row.data for row in whole(rows, model[1])}


def whole(rows: Iterable[Sequence[Any]], model: str) -> list[VectorRow]:
    """Return the embeddings by a model that rows hold, without those that fail their checksum."""
    found = []
    for id_, version, checksum, half, raw in rows:
        data = data_of(half, raw)
        if vector_checksum(id_, model, data) == checksum:
            found.append(VectorRow(id=id_, version=version, data=data))
    return found


def data_of(half: bytes | None, raw: bytes | None) -> bytes:
    """Return the values of an embedding from its columns."""
    return bytes(raw or b"") if half is None else _swapped(bytes(half)[_HEAD:])


def drop(connection: Any, model: int) -> int:
    """Delete all embeddings by a model; return their number."""
    lock_counts(connection)
    connection.execute(_SQL["uncount_model"], {"model": model})
    return int(connection.execute(_SQL["drop_vectors_of_model"], {"model": model}).rowcount)


def lock_counts(connection: Any) -> None:
    """Let no other transaction count an embedding until this one ends."""
    connection.execute(_SQL["lock_counts"])


def outdate(connection: Any, key: OwnerKey, ids: Sequence[int]) -> None:
    """Delete all embeddings of memories, whose text has changed or which are forgotten."""
    given = {"tenant": key.tenant, "owner": key.owner, "ids": [*ids]}
    for model, count in connection.execute(_SQL["drop_vectors_of_memories"], given).fetchall():
        _count(connection, key, model, -count)


def renew(connection: Any, key: OwnerKey, id_: int) -> None:
    """Give the embeddings of a memory new versions: an index tells by the terms, which changed, what they embed."""
    given = {"tenant": key.tenant, "owner": key.owner, "id": id_}
    models = [model for (model,) in connection.execute(_SQL["models_of_memory"], given)]
    if models:
        first = take_vector_versions(connection, key, len(models))
        for version, model in enumerate(models, first):
            connection.execute(_SQL["set_vector_version"], given | {"model": model, "version": version})


def _count(connection: Any, key: OwnerKey, model: int, count: int) -> None:
    if count:
        given = {"tenant": key.tenant, "owner": key.owner, "model": model, "count": count}
        connection.execute(_SQL["count_vectors"], given)


def _columns(data: bytes) -> dict[str, Any]:
    """Return the columns for the values of an embedding: a `halfvec`, or bytes that it cannot hold."""
    size = len(data) // 2
    if len(data) % 2 == 0 and 0 < size <= MOST_VALUES and np.isfinite(np.frombuffer(data, "<f2")).all():
        return {"data": half_of(data), "raw": None}
    return {"data": None, "raw": data}


def half_of(data: bytes) -> HalfVector:
    """Return float16 values as a `halfvec`."""
    return HalfVector((len(data) // 2).to_bytes(2, "big", signed=True) + b"\0\0" + _swapped(data))


def _swapped(data: bytes) -> bytes:
    """Return float16 values with their bytes swapped: the server sends and takes them in the other order."""
    return np.frombuffer(data, "<u2").byteswap().tobytes()
