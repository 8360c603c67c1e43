"""Stores embeddings, by model, and finds the memories that have none."""

import heapq
from collections.abc import Mapping, Sequence

from beaver_memory.records import Owner
from beaver_memory.store.bounds import bounded
from beaver_memory.store.in_memory.reads import age
from beaver_memory.store.in_memory.tables import Database, OwnerTable


def missing(table: OwnerTable, model: str, limit: int) -> list[tuple[int, str]]:
    """Return ids and texts of memories that have no embedding by a model, newest first."""
    known = table.vectors.get(model, {})
    waiting = [row.memory for id_, row in table.rows.items() if id_ not in known]
    found = heapq.nlargest(min(bounded(limit), len(waiting)), waiting, key=age)
    return [(memory.id, memory.text) for memory in found]


def pending(database: Database, owner: Owner | None, model: str) -> int:
    """Return how many memories have no embedding by a model, of one owner or of all."""
    tables = database.tables.values() if owner is None else database.found([owner])
    return sum(len(table.rows) - len(table.vectors.get(model, ())) for table in tables)


def put(table: OwnerTable, model: str, vectors: Sequence[tuple[int, bytes]], texts: Mapping[int, str]) -> None:
    """Store embeddings of memories that exist, unless their text is another one by now."""
    for id_, data in vectors:
        row = table.rows.get(id_)
        if row is not None and texts.get(id_, row.memory.text) == row.memory.text:
            table.put_vector(model, id_, data)


def drop(database: Database, model: str) -> int:
    """Delete all embeddings by a model; return their number."""
    return sum(len(table.vectors.pop(model, ())) for table in database.tables.values())
