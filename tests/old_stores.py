"""Databases as earlier versions of the store wrote them."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import apsw

from beaver_memory.store.protocol import Analysed
from beaver_memory.store.rows import new_row
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_memory.store.sqlite.row_sums import register
from beaver_memory.store.sqlite.rows import FAILS
from beaver_memory.testing.store_cases.kit import NOW
from beaver_memory.texts import micros
from beaver_toolkit.sqlite.migrations import read_migrations

COLUMNS = """
    id, owner, version, store, type, scope, project, session, agent, source, speaker, origin, pinned, confidence,
    importance, created_at, expires_at, valid_from, valid_until, added_at, updated_at, token_count, hash, length,
    terms, tags, keywords, related_files, related_people, title, summary, facts, narrative
"""
ADD = f"INSERT INTO observations ({COLUMNS}) VALUES ({', '.join('?' * 33)})"  # noqa: S608 - names of columns
SCRIPTS = read_migrations(PACKAGE)
KEYS = 2
"""The last version whose ids are those of the whole store."""


def old_store(path: Path, items: Sequence[Analysed], *more: str, version: int = KEYS) -> None:
    """Make a database of an earlier version with memories of any owners, numbered from 1 across all tenants.

    Args:
        path: the database.
        items: the memories.
        more: statements to run afterwards.
        version: how many migrations the database has had.
    """
    connector = Connector(path, SCRIPTS[:version])
    connector.open()
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(each.memory.owner for each in items), 1)}
    try:
        with connector.writing() as connection:
            for owner, number in numbers.items():
                live = sum(each.memory.owner == owner for each in items)
                connection.execute("INSERT INTO owners VALUES (?, ?, ?, ?)", (number, owner.tenant, owner.user, live))
            for id_, item in enumerate(items, 1):
                row = new_row(item, numbers[item.memory.owner], id_, micros(NOW))[:32]
                connection.execute(ADD, (id_, *row))
            connection.execute("UPDATE counter SET value = ?", (len(items),))
            for statement in more:
                connection.execute(statement)
    finally:
        connector.close()


def rows_of(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Return what a statement finds in a database, without opening it as a store."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        return connection.execute(statement).fetchall()


def renew_checksums(path: Path) -> None:
    """Give each memory the checksum of the values that its row holds now, as if the store had written them."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        register(connection)
        sums = FAILS.removesuffix(" IS NOT o.checksum").replace("found_sum", "memory_sum")
        connection.execute(f"UPDATE observations AS o SET checksum = {sums}")  # noqa: S608 - the store's own SQL
