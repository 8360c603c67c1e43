"""Reads and changes the rows of a memory database that no store has open."""

import contextlib
from pathlib import Path

import apsw

from beaver_memory.store.sqlite.preparation import register
from beaver_memory.store.sqlite.rows import FAILS


def rows_of(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Return what a statement finds in a database, without opening it as a store."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        return connection.execute(statement).fetchall()


def renew_checksums(path: Path) -> None:
    """Give each memory the checksum of the values that its row holds now, as if the store had written them."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        register(connection)
        sums = FAILS.removesuffix(" IS NOT o.checksum")
        connection.execute(f"UPDATE observations AS o SET checksum = {sums}")  # noqa: S608 - the store's own SQL
