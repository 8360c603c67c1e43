"""Opens a SQLite file of ours: engine, pragmas, migrations, and what goes wrong with them."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from beaver_toolkit.locks import LocksMissing

if TYPE_CHECKING:
    import apsw

BUSY_SECONDS = 5.0

_CATEGORIES = {
    "BusyError": "locked",
    "LockedError": "locked",
    "FullError": "disk_full",
    "ReadOnlyError": "read_only",
    "PermissionsError": "read_only",
    "CantOpenError": "cannot_open",
    "CorruptError": "corrupt",
    "NotADBError": "corrupt",
    "IOError": "io_error",
    "SQLError": "not_ours",
    "ConstraintError": "not_ours",
}


class DatabaseError(Exception):
    """The database cannot do what it was asked.

    Attributes:
        category: why, in one word that may be shown anywhere.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(category)


def sqlite() -> ModuleType:
    """Return apsw, imported when the first database is opened."""
    import apsw  # noqa: PLC0415 - importing the host must not load a database engine

    return apsw


@contextlib.contextmanager
def faults() -> Iterator[None]:
    """Turn whatever the database or the file system raises into `DatabaseError`."""
    try:
        yield
    except sqlite().Error as error:
        raise DatabaseError(_CATEGORIES.get(type(error).__name__, "failed")) from error
    except LocksMissing as error:
        raise DatabaseError("no_locks") from error
    except OSError as error:
        raise DatabaseError("io_error") from error
    except UnicodeDecodeError as error:
        raise DatabaseError("corrupt") from error


def migrations(package: str = "beaver_hooks.audit") -> list[str]:
    """Return a package's migrations, oldest first; the version of a database is the number of those it has had."""
    folder = files(package) / "migrations"
    scripts = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return [script.read_text("utf-8") for script in scripts]


def connect(
    path: Path, prepare: "Callable[[apsw.Connection], None]", *, wait: float | None = None
) -> "apsw.Connection":
    """Open an existing file and prepare the connection; it waits for the locks of other processes."""
    engine = sqlite()
    # Never SQLITE_OPEN_CREATE: a file that vanished is noticed, not replaced.
    connection: apsw.Connection = engine.Connection(str(path), flags=engine.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(round((BUSY_SECONDS if wait is None else wait) * 1000))
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare_reading(connection: "apsw.Connection") -> None:
    """Let the connection read, and refuse a database that a newer version wrote."""
    connection.pragma("query_only", 1)
    if _version(connection) > len(migrations()):
        raise DatabaseError("newer")


def prepare_writing(connection: "apsw.Connection", scripts: Sequence[str] | None = None) -> None:
    """Make every commit of the connection durable, and bring the database up to date.

    Args:
        connection: what to prepare.
        scripts: the migrations, oldest first; the trail's own unless given.
    """
    if connection.readonly("main"):
        raise DatabaseError("read_only")
    connection.pragma("synchronous", "FULL")
    _use_wal(connection)
    _migrate(connection, migrations() if scripts is None else scripts)


@contextlib.contextmanager
def immediate(connection: "apsw.Connection") -> Iterator[None]:
    """Hold the write lock for a block; commit at its end, or undo all of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has undone it already where the disk was full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_wal(connection: "apsw.Connection") -> None:
    # Changing the mode does not always wait for other processes as other statements do.
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
        except sqlite().BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _version(connection: "apsw.Connection") -> int:
    return int(connection.pragma("user_version"))


def _migrate(connection: "apsw.Connection", scripts: Sequence[str]) -> None:
    if _version(connection) == len(scripts):
        return
    with immediate(connection):
        # Read again under the lock: another process may have been faster.
        done = _version(connection)
        if done > len(scripts):
            raise DatabaseError("newer")
        for script in scripts[done:]:
            connection.execute(script)
        connection.pragma("user_version", len(scripts))
