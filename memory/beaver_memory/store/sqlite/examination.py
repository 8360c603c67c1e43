"""Examines a database that no store has open: it changes nothing, and migrates nothing."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import apsw
import attrs

from beaver_memory.errors import StoreError
from beaver_memory.records import Memory
from beaver_memory.store.sqlite import integrity
from beaver_memory.store.sqlite.owners import Damage
from beaver_memory.store.sqlite.preparation import APPLICATION, PACKAGE, register
from beaver_memory.store.sqlite.turn_queue import count_parked
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError, category_of, faults
from beaver_toolkit.sqlite.migrations import read_migrations

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
        refused: the ids of memories that would not be stored today; looked for only if there is no problem.
        parked: how many turns wait for the user, because their capture failed too often.
    """

    memories: int
    examined: int
    problems: tuple[str, ...] = ()
    refused: tuple[int, ...] = ()
    parked: int = 0


Refuses = Callable[[Memory], bool]
"""Returns whether a memory would not be stored today."""


def _accept(_memory: Memory) -> bool:
    return False


def examine(
    path: Path, *, refuses: Refuses = _accept, shift: int = 0, most_bytes: int = MOST_BYTES, newest: int = NEWEST
) -> Examination:
    """Examine a whole database, or the newest memories of one that is larger than `most_bytes`.

    Args:
        path: the database.
        refuses: called with each of the newest memories, if the database is sound.
        shift: the number that is added to ids.
        most_bytes: the size up to which all memories are verified.
        newest: how many are verified of a larger one.

    Raises:
        StoreError: it cannot be read; says why.
    """
    try:
        with contextlib.closing(Database.read(path, read_migrations(PACKAGE))) as database:
            connection = database.connection
            if int(connection.pragma("application_id")) != APPLICATION:
                raise StoreError(path, "not_ours")
            register(connection)
            whole = path.stat().st_size <= most_bytes
            connection.execute("BEGIN")
            found = _examined(connection, None if whole else newest, shift)
            if found.problems:
                return found
            refused = integrity.newest_among(connection, newest, refuses)
            return attrs.evolve(found, refused=tuple(shift + id_ for id_ in refused))
    except DatabaseError as error:
        raise StoreError(path, error.category) from error
    except faults() as error:
        raise StoreError(path, category_of(error)) from error


def _examined(connection: apsw.Connection, newest: int | None, shift: int) -> Examination:
    memories, parked = integrity.count_rows(connection), count_parked(connection)
    if newest is None:
        found = integrity.problems(connection, Damage(), writable=False, shift=shift)
        return Examination(memories=memories, examined=memories, problems=tuple(found), parked=parked)
    found = integrity.problems_of_newest(connection, newest, shift=shift)
    return Examination(memories=memories, examined=min(memories, newest), problems=tuple(found), parked=parked)
