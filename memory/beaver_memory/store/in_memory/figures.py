"""Counts the contents of a store in memory, and finds damage in it."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from beaver_memory.store.in_memory.tables import OwnerTable
from beaver_memory.store.protocol import IndexRow, VectorRow


def stats(tables: Collection[OwnerTable]) -> dict[str, Any]:
    """Return the counts of tables, by name; their bytes are those of texts, terms and embeddings."""
    memories = [row.memory for table in tables for row in table.rows.values()]
    embeddings: Counter[str] = Counter()
    for table in tables:
        embeddings.update({model: len(rows) for model, rows in table.vectors.items()})
    return {
        "memories": len(memories),
        "forgotten": sum(row.gone for table in tables for row in table.changes.values()),
        "owners": len(tables),
        "stores": dict(Counter(str(memory.store) for memory in memories)),
        "types": dict(Counter(memory.type for memory in memories)),
        "embeddings": dict(embeddings),
        "bytes": sum(map(_bytes, tables)),
    }


def holdings(table: OwnerTable) -> dict[str, int]:
    """Return how many rows tell of an owner, by place."""
    return {
        "memories": len(table.rows),
        "vectors": sum(map(len, table.vectors.values())),
        "history": sum(bool(each.old or each.new) for row in table.rows.values() for each in row.history),
        "labels": sum(len(row.labels) for row in table.rows.values()),
        "summaries": len(table.summaries),
        "waiting turns": len(table.waiting),
        "captured turns": len(table.captured_turns),
        "days of capture": len(table.capture_days),
        "marks of forgotten texts": len(table.forgotten_texts),
    }


def problems(tables: Iterable[OwnerTable]) -> list[str]:
    """Return the problems of tables, one sentence each."""
    return [problem for table in tables for problem in _problems(table)]


def _bytes(table: OwnerTable) -> int:
    rows = sum(len(row.memory.text.encode()) + len(row.terms) for row in table.rows.values())
    return rows + sum(len(row.data) for rows in table.vectors.values() for row in rows.values())


def _problems(table: OwnerTable) -> Iterator[str]:
    tables: list[Mapping[int, IndexRow | VectorRow]] = [table.changes, *table.vectors.values()]
    each = ([row.version for row in rows.values()] for rows in tables)
    for versions in each:
        if any(one >= other for one, other in itertools.pairwise((0, *versions, table.last_version + 1))):
            yield "The versions of an owner are not in order."
    if {id_ for id_, row in table.changes.items() if not row.gone} != {*table.rows}:
        yield "The changes of an owner do not match the memories."
    if not {row.memory.superseded_by for row in table.rows.values()} - {None} <= {*table.rows}:
        yield "Memories name successors that do not exist."
    if not {row.memory.doubted_by for row in table.rows.values()} - {None} <= {*table.rows}:
        yield "Memories are doubted by memories that do not exist."
    if not all(rows.keys() <= table.rows.keys() for rows in table.vectors.values()):
        yield "Embeddings do not belong to their memories."
