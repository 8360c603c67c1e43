"""Stores embeddings, by model, and finds the memories that have none."""

import heapq
from collections.abc import Iterable, Mapping, Sequence

from beaver_memory.records import Memory
from beaver_memory.store.bounds import bounded
from beaver_memory.store.in_memory.reads import age
from beaver_memory.store.in_memory.tables import OwnerTable
from beaver_memory.views import Project, stored


def waiting(table: OwnerTable, model: str, project: Project) -> list[Memory]:
    """Return the global memories and those of a project that have no embedding by a model."""
    known, place = table.vectors.get(model, {}), stored(project)
    return [
        row.memory
        for id_, row in table.rows.items()
        if id_ not in known and (row.memory.scope == "global" or place in {None, row.memory.project})
    ]


def missing(table: OwnerTable, model: str, project: Project, limit: int) -> list[tuple[int, str]]:
    """Return ids and texts of those memories, newest first."""
    left = waiting(table, model, project)
    found = heapq.nlargest(min(bounded(limit), len(left)), left, key=age)
    return [(memory.id, memory.text) for memory in found]


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
