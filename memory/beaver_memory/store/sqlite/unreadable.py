"""Reads around rows whose pages SQLite cannot read: one damaged record fails a whole statement."""

from collections.abc import Sequence
from typing import Any

import apsw

from beaver_memory.store.sqlite.owners import OwnerKey, TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries

_SQL = sqlite_queries("unreadable")

Row = Sequence[Any]


def fetched(connection: apsw.Connection, owners: TenantOwners, sql: str, params: Sequence[Any]) -> Sequence[Row]:
    """Return the rows of a statement about memories of owners, without those that cannot be read; note these.

    Args:
        connection: a connection that reads.
        owners: the owners.
        sql: a statement on `observations AS o`; a line begins with its `WHERE`, and its conditions are joined by `AND`.
        params: the values of its placeholders.

    Raises:
        apsw.CorruptError: more than rows is damaged.
    """
    try:
        return connection.execute(sql, params).fetchall()
    except apsw.CorruptError:
        lost = [row for key in owners for row in _unreadable(connection, owners, key)]
        if not lost:
            raise
        return connection.execute(_without(sql, lost), params).fetchall()


def unreadable_ids(connection: apsw.Connection, tenant: int, ids: Sequence[int]) -> list[int]:
    """Return those ids of a tenant's memories whose rows cannot be read."""
    rows = ((id_, connection.execute(_SQL["row_of"], (tenant, id_)).get) for id_ in ids)
    return [id_ for id_, row in rows if row is not None and not _is_readable(connection, row)]


def _unreadable(connection: apsw.Connection, owners: TenantOwners, key: OwnerKey) -> list[int]:
    """Return the numbers of an owner's rows that cannot be read, and note their ids; the indexes tell both."""
    rows = [row for (row,) in connection.execute(_SQL["rows_of_owner"], key)]
    lost = [row for row in rows if not _is_readable(connection, row)]
    for row in lost:
        owners.damaged(connection.execute(_SQL["id_of_row"], (key[0], row)).get or 0)
    return lost


def _is_readable(connection: apsw.Connection, row: int) -> bool:
    try:
        return bool(connection.execute(_SQL["read_row"], (row,)).fetchall())
    except apsw.CorruptError:
        return False
    except UnicodeDecodeError:
        return True


def _without(sql: str, rows: Sequence[int]) -> str:
    # The index has the number of the row, so SQLite leaves a row out before it reads it.
    return sql.replace("\nWHERE ", f"\nWHERE o.row NOT IN ({','.join(map(str, rows))}) AND ", 1)
