"""Prepares a database for use as a store."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.row_sums import register
from beaver_toolkit.sqlite.connections import make_durable
from beaver_toolkit.sqlite.files import back_up, make
from beaver_toolkit.sqlite.migrations import migrate, version_of
from beaver_toolkit.sqlite.secure_delete import ClearingFiles

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
    clearing = ClearingFiles()
    make(path, partial(_fill, scripts=scripts), vfs=clearing.name)


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


def _make_durable(connection: apsw.Connection) -> None:
    make_durable(connection, secure_delete=True)
    connection.pragma("foreign_keys", 1)
    connection.pragma("journal_size_limit", _LOG_BYTES)


def _bring_up_to_date(connection: apsw.Connection, path: Path, scripts: Sequence[str], version: int) -> None:
    back_up(connection, path, version)
    try:
        _migrate(connection, scripts)
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise StoreError(path, "not_migrated") from error


def _fill(connection: apsw.Connection, scripts: Sequence[str]) -> None:
    _migrate(connection, scripts)
    # The tables of earlier versions leave empty pages.
    connection.execute("VACUUM")


def _migrate(connection: apsw.Connection, scripts: Sequence[str]) -> None:
    register(connection)
    migrate(connection, scripts, history=True)
