"""Notices that a database, its log or its log's index is removed or replaced while connections have it open.

SQLite removes these files only when the last connection closes. If another program removes one, SQLite goes on with a
file that has no name, and a process that comes later works on another one: both acknowledge rows that the other never
sees. Connections therefore hold a lease: a shared lock on a small file beside the database, which records the files
that they opened. A process that finds other files by these names does not open them while a lease is held.

The record names the files by inode. A file that is overwritten in place keeps its inode and is not noticed.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from beaver_toolkit.locks import POLL_SECONDS, PRIVATE
from beaver_toolkit.sqlite.connections import NO_INODE, Inode, inode_of
from beaver_toolkit.sqlite.errors import DatabaseError, driver

if TYPE_CHECKING:
    import apsw

DOUBT_SECONDS = 2.0
"""How long files may differ from the record: SQLite replaces them when a process closes and another one opens."""

RESCUE_SECONDS = 5.0
"""How long moving the content of a log into its database waits for other processes that use the log."""

_ENDINGS = ("", "-wal", "-shm")
_MARK = b"!"
"""In the record: a process has noticed other files by these names."""

_MOST_RECORDED = 200


class Lease:
    """The files that the connections of one owner opened.

    Args:
        path: the database.
        lock: the descriptor of the lock file, locked; `None` where there can be none.
        first: whether no other lease is held.
    """

    def __init__(self, path: Path, lock: int | None, *, first: bool) -> None:
        self._names = [f"{path}{ending}" for ending in _ENDINGS]
        self._lock_file = _lock_file(path)
        self._lock = lock
        self._first = first
        self._files: tuple[Inode, ...] = ()

    @classmethod
    def open(
        cls, path: Path, connect: "Callable[[], apsw.Connection]", *, seconds: float
    ) -> "tuple[apsw.Connection, Self]":
        """Return a connection and the lease of its files.

        Args:
            path: the database.
            connect: opens a connection that has read something, so that SQLite has opened all files.
            seconds: how long to wait for a process that opens or migrates the database.

        Raises:
            DatabaseError: `in_use`: a process has files open that lost their names; `locked`: another process takes too
                long to open the database.
        """
        until = time.monotonic() + DOUBT_SECONDS
        while True:
            lease = cls._take(path, seconds)
            try:
                connection = lease.connection(connect)
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
        engine = driver()
        is_log = fault == "log_removed"
        # Where the database is lost, its log must not become part of the next database of that name.
        mode = engine.SQLITE_CHECKPOINT_FULL if is_log else engine.SQLITE_CHECKPOINT_TRUNCATE
        is_moved = _move_log(connection, mode)
        self._mark()
        return "log_lost" if is_log and not is_moved and self._found()[1] != self._files[1] else fault

    def end(self) -> None:
        """Release the lease, after the connections are closed."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            # Released first: of two that end at once, the later one then finds the lock free.
            _unlock(lock)
            if _locked(lock, shared=False) and _is_at(lock, self._lock_file) and _MARK not in _record_in(lock):
                # It stays in a folder that cannot be written.
                with contextlib.suppress(OSError):
                    self._lock_file.unlink()
        finally:
            _unlock(lock)
            os.close(lock)

    @classmethod
    def _take(cls, path: Path, seconds: float) -> Self:
        until = time.monotonic() + seconds
        while True:
            lock = _lock_of(_lock_file(path))
            if lock is None:
                return cls(path, None, first=True)
            first = _locked(lock, shared=False)
            if (first or _locked(lock, shared=True)) and _is_at(lock, _lock_file(path)):
                return cls(path, lock, first=first)
            os.close(lock)
            if time.monotonic() > until:
                raise DatabaseError("locked")
            time.sleep(POLL_SECONDS)

    def connection(self, connect: "Callable[[], apsw.Connection]") -> "apsw.Connection | None":
        """Return a connection to the files that have the names now, or `None` where they are in doubt.

        Args:
            connect: opens a connection that has read something.
        """
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
        if self._lock is not None and _MARK in _record_in(self._lock):
            self._set_aside(*self._recorded()[:2])
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
        """Return whether all files are certainly those that were opened; quick, because each use asks."""
        stat, (database, log, index), files = os.stat, self._names, self._files
        try:
            one, two, three = stat(database), stat(log), stat(index)
        except OSError:
            return False
        return files == ((one.st_dev, one.st_ino), (two.st_dev, two.st_ino), (three.st_dev, three.st_ino))

    def _found(self) -> tuple[Inode, ...]:
        return tuple(map(inode_of, self._names))

    def _recorded(self) -> list[int]:
        return [] if self._lock is None else [int(word) for word in _record_in(self._lock).split() if word.isdigit()]

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
        is_shared = _locked(self._lock, shared=True) and _is_at(self._lock, self._lock_file)
        return is_shared and self._recorded() == inodes

    def _mark(self) -> None:
        """Tell the next process that opens the database alone to look whether the log belongs to it."""
        if self._lock is not None and _MARK not in _record_in(self._lock):
            with contextlib.suppress(OSError):
                os.pwrite(self._lock, b" " + _MARK, os.fstat(self._lock).st_size)


@contextlib.contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Keep connections from opening a database for a block, so that a file can be put in its place.

    Raises:
        DatabaseError: `in_use`: a process has it open, or a database that lost its name.
    """
    lock = _lock_of(_lock_file(path))
    if lock is None:
        yield
        return
    try:
        if not _locked(lock, shared=False) or not _is_at(lock, _lock_file(path)):
            raise DatabaseError("in_use")
        try:
            yield
        finally:
            # Removed under the lock: a process that waits for it finds that the file has lost its name.
            if _MARK not in _record_in(lock):
                with contextlib.suppress(OSError):
                    _lock_file(path).unlink()
            _unlock(lock)
    finally:
        os.close(lock)


def is_leased(path: Path) -> bool:
    """Return whether a process may have a database open, or one that lost this name; makes no file."""
    if not _lock_file(path).exists():
        return False
    lock = _lock_of(_lock_file(path))
    if lock is None:
        return False
    try:
        return not _locked(lock, shared=False)
    finally:
        _unlock(lock)
        os.close(lock)


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


def close_unchanged(connection: "apsw.Connection") -> None:
    """Close a connection, and leave the log and its index where they are."""
    engine = driver()
    with contextlib.suppress(engine.Error):
        connection.config(engine.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


def _inodes(files: Iterable[Inode]) -> list[int]:
    # Without the device: containers number the same one differently.
    return [inode for _, inode in files]


def _lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.open.lock")


def _lock_of(path: Path) -> int | None:
    """Open the lock file; `None` in a folder that cannot be written, and on a system or a disk without such locks."""
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it; there an open file cannot be removed

        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return lock
    except OSError:
        os.close(lock)
        return None
    fcntl.flock(lock, fcntl.LOCK_UN)
    return lock


def _locked(lock: int, *, shared: bool) -> bool:
    """Take the lock, or change its kind; return whether it was free."""
    import fcntl  # noqa: PLC0415 - see `_lock_of`

    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(lock: int) -> None:
    import fcntl  # noqa: PLC0415 - see `_lock_of`

    # A forked child has the same lock: closing alone would leave it to the child.
    fcntl.flock(lock, fcntl.LOCK_UN)


def _record_in(lock: int) -> bytes:
    return os.pread(lock, _MOST_RECORDED, 0)


def _is_at(lock: int, path: Path) -> bool:
    """Return whether the lock file still has its name: the process that releases it last removes it."""
    found = os.fstat(lock)
    return inode_of(path) == (found.st_dev, found.st_ino)
