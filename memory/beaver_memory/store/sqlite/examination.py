"""Examines a database that no store has open: it changes nothing, and migrates nothing."""

import contextlib
from pathlib import Path

import apsw
import attrs

from beaver_memory.errors import StoreError
from beaver_memory.store.sqlite import integrity
from beaver_memory.store.sqlite.damage import Damage
from beaver_memory.store.sqlite.preparation import APPLICATION, PACKAGE
from beaver_memory.store.sqlite.row_sums import register
from beaver_memory.store.sqlite.turn_queue import count_parked
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError, category_of, faults
from beaver_toolkit.sqlite.migrations import read_migrations, version_of

MOST_BYTES = 256 * 1024 * 1024
"""The size up to which a whole database is examined."""

NEWEST = 20_000
"""Memories of a larger database that are examined."""


@attrs.frozen(kw_only=True)
class Examination:
    """The result of an examination.

    Attributes:
        memories: how many memories the database holds.
        examined: how many of them were read.
        problems: the problems that were found, one sentence each.
        parked: how many turns wait for the user, because their capture failed too often.
        is_older: an earlier version wrote the database, so that its rows cannot be verified before the next opening.
    """

    memories: int
    examined: int
    problems: tuple[str, ...] = ()
    parked: int = 0
    is_older: bool = False


def examine(path: Path, *, most_bytes: int = MOST_BYTES, newest: int = NEWEST) -> Examination:
    """Examine a whole database, or the newest memories of one that is larger than `most_bytes`.

    Raises:
        StoreError: it cannot be read; says why.
    """
    scripts = read_migrations(PACKAGE)
    try:
        with contextlib.closing(Database.read(path, scripts)) as database:
            connection = database.connection
            if int(connection.pragma("application_id")) != APPLICATION:
                raise StoreError(path, "not_ours")
            if version_of(connection) < len(scripts):
                return Examination(memories=0, examined=0, is_older=True)
            register(connection)
            whole = path.stat().st_size <= most_bytes
            return _examined(connection, None if whole else newest)
    except DatabaseError as error:
        raise StoreError(path, error.category) from error
    except faults() as error:
        raise StoreError(path, category_of(error)) from error


def _examined(connection: apsw.Connection, newest: int | None) -> Examination:
    connection.execute("BEGIN")
    memories, parked = integrity.count_rows(connection), count_parked(connection)
    if newest is None:
        found = integrity.problems(connection, Damage(), writable=False)
        return Examination(memories=memories, examined=memories, problems=tuple(found), parked=parked)
    found = integrity.problems_of_newest(connection, newest)
    return Examination(memories=memories, examined=min(memories, newest), problems=tuple(found), parked=parked)
