"""Stores copies of embeddings in tables of the extension sqlite-vec.

Each model has one table, in the same database. A unit is a passage: its number is the row of its memory followed by the
number of the passage; callers name it by the id of the memory instead of the row. Versions keep a table in step: a
search first copies the embeddings above the table's mark. Forgetting a memory removes its units in the same
transaction: where the extension cannot be loaded, the tables that hold the memory are emptied, which needs no
extension, and the next process with the extension fills them again.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import apsw
import attrs
import numpy as np

from beaver_memory.records import Owner
from beaver_memory.store.protocol import VectorRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite import embeddings
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.extension import VecError, ensure, installed, vec_faults
from beaver_memory.store.sqlite.owners import NO_OWNER, OwnerKey, TenantOwners
from beaver_memory.store.sqlite.word_index import row_of

_SQL = queries_of("sqlite", "sqlite_vec")

SHIFT = 16
"""Bits of a unit's number that hold its passage."""

MOST = 4096
"""Units that one question may return."""

BATCH = 500
"""Embeddings that are copied in one transaction."""


class VecTables:
    """The tables of one store.

    Args:
        connector: the connector of the store.
        library: returns the path of the extension.
    """

    def __init__(self, connector: Connector, library: Callable[[], str] = installed) -> None:
        self._connector = connector
        self._library = library

    def ensure(self) -> None:
        """Check that the extension can be used.

        Raises:
            VecError: the extension cannot be used.
            StoreError: the store cannot be used.
        """
        with self._connector.reading() as connection, vec_faults():
            ensure(connection, self._library)

    def of(self, owner: Owner, model: str, dimensions: int) -> "VecTable":
        """Return the part of a model's table that belongs to an owner."""
        return VecTable(self._connector, self._library, owner, model, dimensions)


@attrs.frozen
class VecTable:
    """The rows of one owner in the table of one model. Thread-safe."""

    _connector: Connector
    _library: Callable[[], str]
    _owner: Owner
    _model: str
    _dimensions: int

    def catch_up(self) -> bool:
        """Copy some of the embeddings that are newer than the table; return whether it has all of them.

        Raises:
            VecError: the extension cannot be used.
            StoreError: the store cannot be used.
        """
        with self._connector.reading() as connection:
            if not self._behind(connection):
                return True
        with self._connector.writing() as connection, vec_faults():
            ensure(connection, self._library)
            return (
                _copy(
                    connection,
                    self._connector.owners.those_of(connection, [self._owner]),
                    self._model,
                    self._dimensions,
                )
                < BATCH
            )

    def near(self, query: np.ndarray, limit: int, among: Sequence[int] | None = None) -> list[int]:
        """Return the rows nearest to a query, the nearest first, at most `MOST`.

        Args:
            query: the vector.
            limit: the number of rows.
            among: only these rows; all of them if `None`.

        Raises:
            VecError: the extension cannot be used.
            StoreError: the store cannot be used.
        """
        name = _name(self._model)
        with self._connector.reading() as connection, vec_faults():
            tenant, number = self._key(connection)
            if not _mark(connection, name, number):
                return []
            ensure(connection, self._library)
            given: tuple[Any, ...] = (query.astype("<f4").tobytes(), min(limit, MOST), number)
            if among is None:
                rows = connection.execute(_SQL["nearest_units"].format(table=name), (*given, tenant))
            else:
                params = (*given, json.dumps(among), tenant, tenant)
                rows = connection.execute(_SQL["nearest_among"].format(table=name), params)
            return [int(unit) for (unit,) in rows]

    def _behind(self, connection: apsw.Connection) -> bool:
        key, which = self._key(connection), embeddings.model_number(connection, self._model) or 0
        return embeddings.last(connection, key, which) > _mark(connection, _name(self._model), key[1])

    def _key(self, connection: apsw.Connection) -> OwnerKey:
        return self._connector.owners.find(connection, self._owner) or NO_OWNER


def erase(connection: apsw.Connection, tenant: int, id_: int, library: Callable[[], str] = installed) -> None:
    """Remove a forgotten memory from all tables, within the transaction that forgets it."""
    tables = _tables(connection)
    memory = row_of(connection, tenant, id_) if tables else 0
    for name in tables:
        if not _units(connection, name, memory):
            continue
        try:
            ensure(connection, library)
        except VecError:
            empty(connection, name)
        else:
            _delete(connection, name, memory)


def empty(connection: apsw.Connection, name: str) -> None:
    """Remove all rows and the mark of a table, without the extension, as if the table were new."""
    for shadow in ("rowids", "chunks", "vector_chunks00"):
        connection.execute(_SQL["empty_shadow"].format(table=name, shadow=shadow))
    connection.execute(_SQL["drop_marks"], (name,))


def drop(connection: apsw.Connection, model: str) -> None:
    """Remove all rows of a model's table."""
    if _name(model) in _tables(connection):
        empty(connection, _name(model))


def _copy(connection: apsw.Connection, owners: TenantOwners, model: str, dimensions: int) -> int:
    """Copy a batch of embeddings; return their number."""
    (owner,) = owners
    name, which = _name(model), embeddings.model_number(connection, model) or 0
    connection.execute(_SQL["make_marks"])
    connection.execute(_SQL["make_table"].format(table=name, dimensions=dimensions))
    rows = embeddings.newer(connection, owners, which, _mark(connection, name, owner[1]), BATCH)
    for row in rows:
        memory = row_of(connection, owner[0], row.id)
        _delete(connection, name, memory)
        values = [((memory << SHIFT) + passage, owner[1], data) for passage, data in _passages(row, dimensions)]
        connection.executemany(_SQL["add_unit"].format(table=name), values)
    if rows:
        connection.execute(_SQL["set_mark"], (name, owner[1], rows[-1].version))
    return len(rows)


def _passages(row: VectorRow, dimensions: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the vector of each passage of a memory; skip invalid vectors."""
    whole = len(row.data) // (2 * dimensions)
    values = np.frombuffer(row.data, "<f2", count=whole * dimensions).reshape(whole, dimensions).astype("<f4")
    for passage in np.isfinite(values).all(axis=1).nonzero()[0].tolist():
        yield passage, values[passage].tobytes()


def _delete(connection: apsw.Connection, name: str, memory: int) -> None:
    connection.executemany(_SQL["drop_unit"].format(table=name), _units(connection, name, memory))


def _units(connection: apsw.Connection, name: str, memory: int) -> list[tuple[Any, ...]]:
    return connection.execute(_SQL["units"].format(table=name), (memory << SHIFT, (memory + 1) << SHIFT)).fetchall()


def _tables(connection: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute(_SQL["tables"]).fetchall()]


def _mark(connection: apsw.Connection, name: str, owner: int) -> int:
    """Return the version up to which a table has an owner's embeddings."""
    if not connection.table_exists("main", "observations_vec_marks"):
        return 0
    return int(connection.execute(_SQL["mark"], (name, owner)).get or 0)


def _name(model: str) -> str:
    return f"observations_vec_{sha256(model.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
