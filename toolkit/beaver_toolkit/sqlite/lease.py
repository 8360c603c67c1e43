"""Notices that a database, its log or its log's index is removed or replaced while connections have it open.

SQLite removes these files only when the last connection closes. If another program removes one, SQLite goes on with a
file that has no name, and a process that comes later works on another one: both acknowledge rows that the other never
sees. Connections therefore hold a lease: a shared lock on a small file beside the database, which records the files
that they opened. A process that finds other files by these names does not open them while a lease is held.

The record names the files by inode. A file that is overwritten in place keeps its inode: `commits.py` notices it before
the next commit.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from beaver_toolkit.locks import POLL_SECONDS
from beaver_toolkit.sqlite.commits import Commits
from beaver_toolkit.sqlite.connections import NO_INODE, Immediate, Inode, close_unchanged, inode_of
from beaver_toolkit.sqlite.errors import DatabaseError, driver
from beaver_toolkit.sqlite.lease_lock import MARK, is_at, lock_file, open_lock, record_in, release, take
from beaver_toolkit.sqlite.losses import find_loss

if TYPE_CHECKING:
    import apsw

DOUBT_SECONDS = 2.0
"""How long files may differ from the record: SQLite replaces them when a process closes and another one opens."""

RESCUE_SECONDS = 5.0
"""How long moving the content of a log into its database waits for other processes that use the log."""

SETTLED_NS = 3_000_000_000
"""How old the last change of a folder must be, so that the next one gives it another time on every file system."""

_ENDINGS = ("", "-wal", "-shm")


class Lease:
    """The files that the connections of one owner opened.

    Args:
        path: the database.
        lock: the descriptor of the lock file, locked; `None` where there can be none.
        first: whether no other lease is held.
    """

    def __init__(self, path: Path, lock: int | None, *, first: bool) -> None:
        self._names = [f"{path}{ending}" for ending in _ENDINGS]
        self._lock_file = lock_file(path)
        self._lock = lock
        self._first = first
        self._files: tuple[Inode, ...] = ()
        self._folder = str(path.parent)
        self._settled: tuple[int, int, int] | None = None
        self._path = path
        self._commits: Commits | None = None
        self._is_overwritten = False

    @classmethod
    def open(
        cls, path: Path, connect: "Callable[[], apsw.Connection]", *, seconds: float, views: bool = False
    ) -> "tuple[apsw.Connection, Self]":
        """Return a connection and the lease of its files.

        Args:
            path: the database.
            connect: opens a connection that has read something, so that SQLite has opened all files.
            seconds: how long to wait for a process that opens or migrates the database.
            views: whether the connections cannot write, not even into the log's index or the folder.

        Raises:
            DatabaseError: `in_use`: a process has files open that lost their names; `locked`: another process takes too
                long to open the database.
        """
        until = time.monotonic() + DOUBT_SECONDS
        while True:
            lease = cls._take(path, seconds)
            try:
                connection = lease.connection(connect, views=views)
            except BaseException:
                lease.end()
                raise
            if connection is not None:
                return connection, lease
            lease.end()
            if time.monotonic() > until:
                raise DatabaseError("in_use")
            time.sleep(POLL_SECONDS)

    def fault(self) -> str:
        """Return why the names no longer lead to the opened files, as a category; empty if they do."""
        commits = self._commits
        if self._is_overwritten or (commits is not None and commits.is_refused):
            return "overwritten"
        if self._is_intact():
            return ""
        found = self._found()
        if found == self._files:
            return ""
        if found[0] != self._files[0]:
            return "missing" if found[0] == NO_INODE else "exchanged"
        return "log_removed"

    def rescue(self, connection: "apsw.Connection", fault: str) -> str:
        """Move the content of the opened log into the opened database; return the fault, with what it has cost.

        No other process can have written to the database since: none opens it before the last lease ends.

        Args:
            connection: one that may checkpoint.
            fault: the result of `fault`.
        """
        if fault == "overwritten" or self.is_overwritten(connection):
            if self._lock is not None:
                self._mark()
                # Each process that has the database open notices that this file is gone. SQLite makes it from the log.
                Path(self._names[2]).unlink(missing_ok=True)
            return "overwritten"
        engine = driver()
        is_log = fault == "log_removed"
        # Where the database is lost, its log must not become part of the next database of that name.
        mode = engine.SQLITE_CHECKPOINT_FULL if is_log else engine.SQLITE_CHECKPOINT_TRUNCATE
        is_moved = _move_log(connection, mode)
        self._mark()
        return "log_lost" if is_log and not is_moved and self._found()[1] != self._files[1] else fault

    def writing(self, connection: "apsw.Connection") -> Immediate:
        """Return a transaction; leaving it raises `overwritten` if acknowledged commits are missing."""
        return Immediate(connection) if self._commits is None else self._commits.counted(connection)

    def is_overwritten(self, connection: "apsw.Connection") -> bool:
        """Return whether acknowledged commits are missing from what a connection sees: a file was overwritten."""
        engine = driver()
        try:
            found = self._commits is not None and self._commits.are_missing(connection)
        except (engine.CorruptError, engine.NotADBError, engine.IOError):
            # A checkpoint copies pages of a damaged log into the database without looking at them.
            found = True
        except engine.Error:
            found = False
        self._is_overwritten = self._is_overwritten or found
        return self._is_overwritten

    def checkpoint(self, connection: "apsw.Connection", mode: int) -> None:
        """Move the log into the database, unless a file was overwritten."""
        if self._commits is None:
            connection.wal_checkpoint(mode=mode)
        elif not self.is_overwritten(connection):
            self._commits.checkpoint(connection, mode)

    def end(self) -> None:
        """Release the lease, after the connections are closed."""
        lock, self._lock = self._lock, None
        commits, self._commits = self._commits, None
        if lock is None:
            return
        try:
            # Released first: of two that end at once, the later one then finds the lock free.
            release(lock)
            if take(lock, shared=False) and is_at(lock, self._lock_file) and MARK not in record_in(lock):
                if commits is not None and self._files and self._found()[1] == NO_INODE:
                    commits.keep_closed(self._path)
                # It stays in a folder that cannot be written.
                with contextlib.suppress(OSError):
                    self._lock_file.unlink()
        finally:
            release(lock)
            os.close(lock)
            if commits is not None:
                commits.close()

    @classmethod
    def _take(cls, path: Path, seconds: float) -> Self:
        until = time.monotonic() + seconds
        while True:
            lock = open_lock(lock_file(path))
            if lock is None:
                return cls(path, None, first=True)
            first = take(lock, shared=False)
            if (first or take(lock, shared=True)) and is_at(lock, lock_file(path)):
                return cls(path, lock, first=first)
            os.close(lock)
            if time.monotonic() > until:
                raise DatabaseError("locked")
            time.sleep(POLL_SECONDS)

    def connection(self, connect: "Callable[[], apsw.Connection]", *, views: bool) -> "apsw.Connection | None":
        """Return a connection to the files that have the names now, or `None` where they are in doubt.

        Args:
            connect: opens a connection that has read something.
            views: see `open`.
        """
        if self._lock is not None and not views:
            self._commits = Commits(self._path)
        if self._first:
            self._make_ready(connect)
        elif self._recorded() != _inodes(self._found()):
            return None
        before = self._found()
        connection = connect()
        if self._found() == before:
            self._files = before
            if not self._first or self._record():
                return connection
        close_unchanged(connection)
        return None

    def _make_ready(self, connect: "Callable[[], apsw.Connection]") -> None:
        if self._lock is not None and MARK in record_in(self._lock) and len(recorded := self._recorded()) > 1:
            self._set_aside(*recorded[:2])
        if self._commits is not None:
            find_loss(self._path, self._commits)
        if NO_INODE in self._found():
            # Files that were there before and after a connection was opened are those that it opened.
            close_unchanged(connect())

    def _set_aside(self, database: int, log: int) -> None:
        """Rename a log that does not belong to the database: SQLite would apply it."""
        found = _inodes(self._found())
        if found[1] and (found[0] == database) != (found[1] == log):
            with contextlib.suppress(OSError):
                Path(self._names[1]).replace(f"{self._names[1]}.replaced")

    def _is_intact(self) -> bool:
        """Return whether all files are certainly those that were opened; quick, because each use asks.

        To give a name to another file changes the folder, so a folder without a change since the last look at the files
        answers for them.
        """
        stat = os.stat
        try:
            folder = stat(self._folder)
            state = folder.st_dev, folder.st_ino, folder.st_mtime_ns
            if state == self._settled:
                return True
            one, two, three = map(stat, self._names)
        except OSError:
            return False
        if self._files != ((one.st_dev, one.st_ino), (two.st_dev, two.st_ino), (three.st_dev, three.st_ino)):
            return False
        # Changes within a tick of the file system's clock give the folder the same time.
        if time.time_ns() - folder.st_mtime_ns > SETTLED_NS:
            self._settled = state
        return True

    def _found(self) -> tuple[Inode, ...]:
        return tuple(map(inode_of, self._names))

    def _recorded(self) -> list[int]:
        return [] if self._lock is None else [int(word) for word in record_in(self._lock).split() if word.isdigit()]

    def _record(self) -> bool:
        """Record the opened files, and let other processes open them; return whether the record is in force."""
        if self._lock is None:
            return True
        inodes = _inodes(self._found())
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, " ".join(map(str, inodes)).encode("ascii"), 0)
        except OSError:
            # A full disk. A lease without a record would keep other processes out.
            self.end()
            return True
        # Another process may take the lock between the two kinds.
        is_shared = take(self._lock, shared=True) and is_at(self._lock, self._lock_file)
        return is_shared and self._recorded() == inodes

    def _mark(self) -> None:
        """Tell the next process that opens the database alone to look whether the log belongs to it."""
        if self._lock is not None and MARK not in record_in(self._lock):
            with contextlib.suppress(OSError):
                os.pwrite(self._lock, b" " + MARK, os.fstat(self._lock).st_size)


def _move_log(connection: "apsw.Connection", mode: int) -> bool:
    """Move the content of the log into the database; return whether all of it is there."""
    engine, until = driver(), time.monotonic() + RESCUE_SECONDS
    while True:
        try:
            connection.set_busy_timeout(round(RESCUE_SECONDS * 1000))
            pages, moved = connection.wal_checkpoint(mode=mode)
        except engine.BusyError:
            # SQLite does not wait for a process that is moving the same log.
            if time.monotonic() > until:
                return False
            time.sleep(POLL_SECONDS)
        except engine.Error:
            return False
        else:
            return bool(pages == moved)


def _inodes(files: Iterable[Inode]) -> list[int]:
    # Without the device: containers number the same one differently.
    return [inode for _, inode in files]
