"""Opens the file of the store, lends its connections, and says what is wrong with it.

One connection writes, behind a lock. Another one takes the log into the database; it alone goes through `clearing`, so
that no commit waits for the interpreter half-way. Readers borrow one of a few others for the length of a question;
SQLite lets them read while somebody writes. Before each use the file is looked at: a store whose file was deleted or
replaced says so, instead of writing to where nobody will ever read.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.store.owners import OwnerBook
from beaver_memory.store.preparation import PACKAGE, make_unless_there_is_a_log, prepare
from beaver_toolkit.sqlite.connections import NO_INODE, connect, immediate, inode_of
from beaver_toolkit.sqlite.errors import DatabaseError, category_of, faults
from beaver_toolkit.sqlite.files import sweep
from beaver_toolkit.sqlite.migrations import read_migrations
from beaver_toolkit.sqlite.readers import ReaderPool
from beaver_toolkit.sqlite.secure_delete import ClearingFiles

PATIENCE = 30.0
"""Seconds that others who lock the file are waited for."""

_CLEANER_PATIENCE = 0.2
_CACHE_KIB = {"reader": 8_192, "writer": 32_768, "cleaner": 1_024}
_LOG_PAGES = 1_000

_HARMLESS = frozenset({"locked", "disk_full", "closed", "forked"})
"""Categories after which the connections are as good as before."""


class Connector:
    """Holds the connections of one store, for all threads of one process.

    Args:
        path: the database; its folder must exist.
        scripts: the migrations, oldest first; the store's own unless given.
        patience: how many seconds opening and reading wait for others who lock the file; writing always waits long.
    """

    def __init__(self, path: Path, scripts: Sequence[str] | None = None, *, patience: float = PATIENCE) -> None:
        self._path = path
        self._patience = patience
        self._scripts = read_migrations(PACKAGE) if scripts is None else tuple(scripts)
        self._files = ClearingFiles()
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._readers = ReaderPool(self._reader)
        self._writer: apsw.Connection | None = None
        self._cleaner: apsw.Connection | None = None
        self._logged_pages = 0
        self._inode = NO_INODE
        self._closed = False
        self.identity = ""
        self.owners = OwnerBook()

    def open(self) -> None:
        """Open the store, and make it if it is missing.

        Raises:
            StoreError: it cannot be used. Nothing that exists is replaced.
        """
        with self._lock, self._faults():
            sweep(self._path)
            if not self._path.parent.is_dir():
                raise StoreError(self._path, "no_folder")
            if not os.path.lexists(self._path):
                make_unless_there_is_a_log(self._path, self._scripts)
            self._connect()

    @property
    def path(self) -> Path:
        """The database."""
        return self._path

    @contextlib.contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Lend a connection that sees one moment of the store for a block.

        Raises:
            StoreError: the store cannot be read.
        """
        self._own()
        with self._faults(), self._readers.lend(self._verify) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Hold the write lock for a block; commit at its end, durably, or undo all of it.

        Raises:
            StoreError: nothing of the block was written, or the file no longer has its name.
        """
        with self.alone() as connection:
            with immediate(connection):
                yield connection
            # Writing to a file that was deleted succeeds, and nobody will ever read it.
            if inode_of(self._path) != self._inode:
                raise StoreError(self._path, "missing")
            if self._logged_pages >= _LOG_PAGES:
                # It is written already: what goes wrong here is met again by the next one.
                with contextlib.suppress(apsw.Error):
                    self._clean(apsw.SQLITE_CHECKPOINT_PASSIVE)

    @contextlib.contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """Lend the writing connection without a transaction.

        Raises:
            StoreError: the store cannot be used.
        """
        self._own()
        with self._lock, self._faults():
            self._verify()
            if self._writer is None:
                raise StoreError(self._path, "closed")
            yield self._writer

    def empty_log(self) -> None:
        """Take what was written out of the log, unless others read it just now: then it stays until it is full."""
        with self.alone():
            self._clean(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def close(self) -> None:
        """Close all connections, but those in use, which are closed when they are given back."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            self._drop()

    def _connect(self) -> None:
        inode = inode_of(self._path)
        if inode == NO_INODE:
            raise StoreError(self._path, "missing")
        if self._path.stat().st_size == 0:
            raise StoreError(self._path, "emptied")
        connection = self._connection("writer")
        try:
            identity = prepare(connection, self._path, self._scripts, self.identity)
        except BaseException:
            connection.close()
            raise
        _wait(connection, PATIENCE)
        self._writer, self._inode, self.identity = connection, inode, identity
        self._cleaner = self._connection("cleaner")
        # It may be an older copy, in which owners have other numbers.
        self.owners = OwnerBook()

    def _connection(self, kind: str) -> apsw.Connection:
        files = self._files.name if kind == "cleaner" else None
        seconds = _CLEANER_PATIENCE if kind == "cleaner" else self._patience
        connection = connect(self._path, busy_seconds=seconds, vfs=files)
        connection.pragma("cache_size", -_CACHE_KIB[kind])
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if kind != "cleaner":
            connection.set_wal_hook(self._logged)
        return connection

    def _reader(self) -> apsw.Connection:
        connection = self._connection("reader")
        connection.pragma("query_only", 1)
        return connection

    def _own(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(self._path, "forked")

    def _verify(self) -> None:
        self._own()
        if self._closed:
            raise StoreError(self._path, "closed")
        if inode_of(self._path) == self._inode:
            return
        with self._lock:
            if inode_of(self._path) != self._inode:
                self._drop()
                self._connect()

    def _drop(self) -> None:
        self._abandon()
        self._inode = NO_INODE
        self._readers.drop()
        # The cleaner last: it takes the log into the database, unless the interpreter closes it at its own end, where
        # nobody would meet the error.
        if self._cleaner is not None:
            self._cleaner.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        gone, self._writer, self._cleaner = (self._writer, self._cleaner), None, None
        for connection in gone:
            if connection is not None:
                with contextlib.suppress(apsw.Error):
                    connection.close()

    def _abandon(self) -> None:
        """Empty the log where the database lost its name: SQLite would read it as a part of what is put there."""
        if inode_of(self._path) != self._inode:
            with contextlib.suppress(apsw.Error):
                self._clean(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _logged(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._logged_pages = pages
        return apsw.SQLITE_OK

    def _clean(self, mode: int) -> None:
        """Take the log into the database, unless others read it just now: it is tried again after the next write."""
        if self._cleaner is not None:
            with contextlib.suppress(apsw.BusyError):
                self._cleaner.wal_checkpoint(mode=mode)
                self._logged_pages = 0

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self._afterwards(error.category)
            raise
        except DatabaseError as error:
            self._afterwards(error.category)
            raise StoreError(self._path, error.category) from error
        except faults() as error:
            category = category_of(error)
            self._afterwards(category)
            raise StoreError(self._path, category) from error

    def _afterwards(self, category: str) -> None:
        if category not in _HARMLESS:
            with self._lock:
                self._drop()


def _wait(connection: apsw.Connection, seconds: float) -> None:
    connection.set_busy_timeout(round(seconds * 1_000))
