"""Prepares a database for use as a store."""

import contextlib
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.row_sums import register
from beaver_toolkit.sqlite.connections import Immediate, make_durable
from beaver_toolkit.sqlite.files import back_up, make
from beaver_toolkit.sqlite.losses import begin_anew
from beaver_toolkit.sqlite.migrations import migrate, version_of

PACKAGE = "beaver_memory.store.sqlite"
_SQL = sqlite_queries("preparation")

APPLICATION = 1111836238
"""The mark of a file that is a store of memories."""

_LOG_BYTES = 16 * 1024 * 1024


def make_unless_there_is_a_log(path: Path, scripts: Sequence[str]) -> None:
    """Make a new store.

    Raises:
        StoreError: a log of an earlier store is there.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        # SQLite would read the log as part of the new database.
        raise StoreError(path, "left_log")
    begin_anew(path)
    make(path, partial(_fill, content=_empty_store(tuple(scripts))))


def prepare(connection: apsw.Connection, path: Path, scripts: Sequence[str], known: str) -> str:
    """Make every commit of a connection durable, bring its store up to date, and return the store's identity.

    Args:
        connection: the connection.
        path: the database.
        scripts: the migrations, oldest first.
        known: the identity that the store must have, or an empty text.

    Raises:
        StoreError: the file is no store, another store, cannot be written, or was written by a newer version.
    """
    if int(connection.pragma("application_id")) != APPLICATION:
        raise StoreError(path, "not_ours")
    version = version_of(connection)
    if version > len(scripts):
        raise StoreError(path, "newer")
    if connection.readonly("main"):
        raise StoreError(path, "read_only")
    _make_durable(connection)
    register(connection)
    if version < len(scripts):
        _bring_up_to_date(connection, path, scripts, version)
    identity = str(connection.execute(_SQL["identity"]).get)
    if known not in {"", identity}:
        raise StoreError(path, "replaced")
    return identity


def view(connection: apsw.Connection, path: Path, scripts: Sequence[str], known: str) -> str:
    """Return the identity of a store that can only be read.

    Args:
        connection: the connection.
        path: the database.
        scripts: the migrations, oldest first.
        known: the identity that the store must have, or an empty text.

    Raises:
        StoreError: the file is no store, another store, or of another version, which needs a migration.
    """
    if int(connection.pragma("application_id")) != APPLICATION:
        raise StoreError(path, "not_ours")
    version = version_of(connection)
    if version != len(scripts):
        raise StoreError(path, "newer" if version > len(scripts) else "read_only")
    identity = str(connection.execute(_SQL["identity"]).get)
    if known not in {"", identity}:
        raise StoreError(path, "replaced")
    return identity


def _make_durable(connection: apsw.Connection) -> None:
    make_durable(connection, secure_delete=True)
    connection.pragma("foreign_keys", 1)
    connection.pragma("journal_size_limit", _LOG_BYTES)


def _bring_up_to_date(connection: apsw.Connection, path: Path, scripts: Sequence[str], version: int) -> None:
    back_up(connection, path, version)
    try:
        migrate(connection, scripts)
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise StoreError(path, "not_migrated") from error


@cache
def _empty_store(scripts: tuple[str, ...]) -> bytes:
    """Return the content of a store without memories; a process makes one for the project and one for the person."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate(connection, scripts)
        content: bytes = connection.serialize("main")
        return content


def _fill(connection: apsw.Connection, content: bytes) -> None:
    connection.deserialize("main", content)
    with Immediate(connection):
        connection.execute(_SQL["new_identity"])
        connection.execute(_SQL["applied_now"], (time.time_ns() // 1000,))
