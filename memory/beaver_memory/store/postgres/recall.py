"""Reads the memories that a search shows together with the versions of their owners, by one statement.

To plan this statement takes twice as long as to carry it out. So it has connections of its own, where it is planned
once for all partitions; when it runs it touches one. All other statements are planned for their values.
"""

from collections.abc import Sequence
from typing import Any

from beaver_memory.records import Memory, Owner
from beaver_memory.store.bounds import usable
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.rows import COLUMNS, memories_of
from beaver_memory.store.postgres.seen import Seen

_SQL = postgres_queries("recall")

_VERSIONS = 3
"""Columns before those of the memory."""


def recalled(
    connection: Any, seen: Seen, ids: Sequence[int], model: int
) -> tuple[dict[int, Memory], dict[Owner, tuple[int, int]]]:
    """Return the visible memories among `ids` by id, and the versions of the visible owners.

    Args:
        connection: a connection that plans a statement once.
        seen: what may be seen.
        ids: the memories.
        model: the number of the model of the vectors.
    """
    sql = _SQL["recalled"].format(columns=COLUMNS, conditions=seen.which.sql)
    rows = connection.execute(sql, seen.params(ids=usable(ids), model=model), binary=True, prepare=True).fetchall()
    memories = memories_of((row[_VERSIONS:] for row in rows if row[-1] is not None), seen.owners)
    return {memory.id: memory for memory in memories}, {seen.owners[row[0]]: (row[1], row[2]) for row in rows}
