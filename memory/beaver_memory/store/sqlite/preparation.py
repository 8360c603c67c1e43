"""Prepares a database for use as a store, and gives a connection the SQL functions for the checksums of rows."""

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow, StoreError
from beaver_memory.records import Owner
from beaver_memory.store.checksums import access_part, change_checksum, memory_checksum, texts_checksum
from beaver_memory.store.queries import queries_of
from beaver_toolkit.sqlite.connections import Immediate, make_durable
from beaver_toolkit.sqlite.files import back_up, make
from beaver_toolkit.sqlite.losses import begin_anew
from beaver_toolkit.sqlite.migrations import migrate, version_of

PACKAGE = "beaver_memory.store.sqlite"
_SQL = queries_of("sqlite", "preparation")

APPLICATION = 1111836238
"""The mark of a file that is a store of memories."""

_LOG_BYTES = 16 * 1024 * 1024

_Function = Callable[..., Any]


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


def register(connection: apsw.Connection) -> None:
    """Give a connection its functions: `found_sum`, `change_sum`, `texts_sum` and `touched_sum`."""
    functions: dict[str, _Function] = {
        "found_sum": _found,
        "change_sum": change_checksum,
        "texts_sum": _texts,
        "touched_sum": _touched,
    }
    for name, function in functions.items():
        connection.create_scalar_function(name, function, deterministic=True)


def _found(*values: Any) -> int | None:
    """Return the checksum of a memory, `None` of a damaged one."""
    try:
        found = memory_checksum(Owner(tenant=values[0], user=values[1], kind=values[2]), values[3:])
    except (DamagedRow, TypeError, ValueError):
        return None
    # A damaged moment makes a number that no checksum is.
    return found if found == _stored(found) else None


def _texts(tenant: str, user: str, kind: Any, *values: str | bytes | int) -> int:
    return texts_checksum(Owner(tenant=tenant, user=user, kind=kind), *values)


def _touched(checksum: int, before: int | None, after: int) -> int:
    return _stored(checksum ^ access_part(before) ^ access_part(after))


def _stored(number: int) -> int:
    """Return a number in the 64 bits of a column."""
    return (number + 2**63) % 2**64 - 2**63
