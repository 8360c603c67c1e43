"""Stores embeddings, by model, and finds the memories that have none."""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from beaver_memory.store.bounds import bounded
from beaver_memory.store.in_memory.reads import age
from beaver_memory.store.in_memory.tables import OwnerTable


def missing(table: OwnerTable, model: str, limit: int) -> list[tuple[int, str]]:
    """Return ids and texts of memories that have no embedding by a model, newest first."""
    known = table.vectors.get(model, {})
    waiting = [row.memory for id_, row in table.rows.items() if id_ not in known]
    found = heapq.nlargest(min(bounded(limit), len(waiting)), waiting, key=age)
    return [(memory.id, memory.text) for memory in found]


def pending(tables: Iterable[OwnerTable], model: str) -> int:
    """Return how many memories of tables have no embedding by a model."""
    return sum(len(table.rows) - len(table.vectors.get(model, ())) for table in tables)


def put(table: OwnerTable, model: str, vectors: Sequence[tuple[int, bytes]], texts: Mapping[int, str]) -> None:
    """Store embeddings of memories that exist, unless their text is another one by now."""
    for id_, data in vectors:
        row = table.rows.get(id_)
        if row is not None and texts.get(id_, row.memory.text) == row.memory.text:
            table.put_vector(model, id_, data)


def of_memories(tables: Iterable[OwnerTable], model: str, ids: Iterable[int]) -> dict[int, bytes]:
    """Return the embeddings of memories of tables by id."""
    wanted = set(ids)
    return {row.id: row.data for table in tables for row in table.vectors.get(model, {}).values() if row.id in wanted}


def drop(tables: Iterable[OwnerTable], model: str) -> int:
    """Delete the embeddings of tables by a model; return their number."""
    return sum(len(table.vectors.pop(model, ())) for table in tables)
