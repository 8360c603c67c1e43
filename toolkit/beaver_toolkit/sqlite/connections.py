"""Opens connections to an existing SQLite file, and runs transactions on them."""

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from beaver_toolkit.files import HAS_DRIVE_CACHE
from beaver_toolkit.sqlite.errors import driver

if TYPE_CHECKING:
    import apsw

BUSY_SECONDS = 5.0
"""How long a statement waits for the locks of other processes by default."""

Inode = tuple[int, int]
NO_INODE = (0, 0)


def connect(path: Path, *, busy_seconds: float | None = None, vfs: str | None = None) -> "apsw.Connection":
    """Open an existing file.

    Args:
        path: the database. It is never created here, so that a file that vanished is noticed and not replaced.
        busy_seconds: how long a statement waits for the locks of other processes; `BUSY_SECONDS` if `None`.
        vfs: the name of the file layer to use; SQLite's own if `None`.
    """
    sqlite = driver()
    connection: apsw.Connection = sqlite.Connection(str(path), flags=sqlite.SQLITE_OPEN_READWRITE, vfs=vfs)
    connection.set_busy_timeout(round((BUSY_SECONDS if busy_seconds is None else busy_seconds) * 1000))
    if HAS_DRIVE_CACHE:
        _sync_fully(connection)
    return connection


def connect_reading(path: Path, *, busy_seconds: float | None = None) -> "apsw.Connection":
    """Open an existing file for reading where it cannot be written: it, its folder or its disk is read-only or full.

    SQLite reads a log there only if the index of the log is there, too. Without a log the file is opened as one that no
    process changes.
    """
    sqlite = driver()
    flags = sqlite.SQLITE_OPEN_READONLY | sqlite.SQLITE_OPEN_URI
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    mode = "mode=ro" if has_log else "immutable=1"
    connection: apsw.Connection = sqlite.Connection(f"{path.absolute().as_uri()}?{mode}", flags=flags)
    connection.set_busy_timeout(round((BUSY_SECONDS if busy_seconds is None else busy_seconds) * 1000))
    return connection


def close_unchanged(connection: "apsw.Connection") -> None:
    """Close a connection, and leave the log and its index where they are."""
    sqlite = driver()
    with contextlib.suppress(sqlite.Error):
        connection.config(sqlite.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


def make_durable(connection: "apsw.Connection", *, secure_delete: bool = False) -> None:
    """Use a write-ahead log, and sync every commit before it returns.

    Args:
        connection: a connection that may write.
        secure_delete: overwrite deleted content.
    """
    _use_log(connection)
    connection.pragma("synchronous", "FULL")
    if secure_delete:
        connection.pragma("secure_delete", 1)


class Immediate:
    """Holds the write lock for a block; commits at its end, or rolls all of it back.

    A class, because a generator takes three times as long to enter and leave.
    """

    __slots__ = ("connection",)

    def __init__(self, connection: "apsw.Connection") -> None:
        self.connection = connection

    def __enter__(self) -> None:
        """Take the write lock."""
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Commit, unless the block or the commit itself failed."""
        if kind is not None:
            self._roll_back()
            return
        try:
            self.before_commit()
            self.connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def before_commit(self) -> None:
        """Do what belongs to the transaction, after its block."""

    def _roll_back(self) -> None:
        # SQLite has rolled it back already where the disk was full.
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")


def inode_of(path: Path | str) -> Inode:
    """Return the identity of a file, which differs for another file of the same name; `NO_INODE` without a file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked before each read and write, so it makes no path
    except (FileNotFoundError, NotADirectoryError):
        return NO_INODE
    return found.st_dev, found.st_ino


def integrity_problems(connection: "apsw.Connection") -> list[str]:
    """Return the faults that SQLite finds in the file; an empty list when it is sound."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    return [problem for problem in found if problem != "ok"]


def _sync_fully(connection: "apsw.Connection") -> None:
    """Empty the cache of the drive with each sync, of commits and of checkpoints. A no-op but on macOS."""
    connection.pragma("fullfsync", 1)
    connection.pragma("checkpoint_fullfsync", 1)


def _use_log(connection: "apsw.Connection") -> None:
    # Changing the mode does not always wait for other processes as other statements do.
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
        except driver().BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
