"""Opens the file of the store, lends its connections, and turns faults of the file into store errors.

One connection writes, behind a lock. Another one, the only one that goes through `clearing`, checkpoints the log into
the database, so that no commit waits for the interpreter half-way. Readers borrow one of a few others for one question;
SQLite lets them read during a write. Before each use the connector checks the file: if it was removed or
replaced, it raises an error instead of writing to a lost file. The same holds for its log and the log's index.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import apsw

from beaver_memory.errors import DamagedRow, StoreError
from beaver_memory.store.sqlite.damage import Damage
from beaver_memory.store.sqlite.owners import OwnerNumbers
from beaver_memory.store.sqlite.preparation import (
    PACKAGE,
    make_unless_there_is_a_log,
    prepare,
    view,
)
from beaver_memory.store.sqlite.row_sums import register
from beaver_toolkit.sqlite.connections import NO_INODE, close_unchanged, connect, connect_reading, inode_of
from beaver_toolkit.sqlite.errors import UNWRITABLE, DatabaseError, category_of, faults
from beaver_toolkit.sqlite.files import sweep
from beaver_toolkit.sqlite.lease import Lease
from beaver_toolkit.sqlite.losses import losses_of
from beaver_toolkit.sqlite.migrations import read_migrations
from beaver_toolkit.sqlite.readers import ReaderPool
from beaver_toolkit.sqlite.secure_delete import ClearingFiles

PATIENCE = 30.0
"""Seconds to wait for other processes that lock the file."""

_CLEANER_PATIENCE = 0.2
_CACHE_KIB = {"reader": 8_192, "writer": 32_768, "cleaner": 1_024}
_LOG_PAGES = 1_000

LossTold = Callable[[int], object]
"""Receives the number of acknowledged commits that are missing from the database."""

_FAULTS = (StoreError, DatabaseError, apsw.Error, OSError)

_HARMLESS = frozenset({"locked", "disk_full", "closed", "forked"})
"""Categories of errors after which the connections can be used as before."""


class Connector:
    """Holds the connections of one store, for all threads of one process.

    Args:
        path: the database; its folder must exist.
        scripts: the migrations, oldest first; the store's own unless given.
        patience: how many seconds opening and reading wait for other processes that lock the file; writing always waits
            long.
        damage: notes rows that fail their checksums.
        lost: receives the number of acknowledged commits that are missing, whenever more are.
    """

    def __init__(
        self,
        path: Path,
        scripts: Sequence[str] | None = None,
        *,
        patience: float = PATIENCE,
        damage: Damage | None = None,
        lost: LossTold = bool,
    ) -> None:
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
        self._lease: Lease | None = None
        self.unwritable = ""
        self._closed = False
        self.identity = ""
        self._damage = damage or Damage()
        self.owners = OwnerNumbers(self._damage)
        self._loss_told = lost
        self._lost = 0

    def open(self) -> None:
        """Open the store, and make it if it is missing.

        Raises:
            StoreError: the store cannot be used. No existing file is replaced.
        """
        with self._lock, self._faults():
            sweep(self._path)
            if not self._path.parent.is_dir():
                raise StoreError(self._path, "no_folder")
            if self._path.is_symlink():
                raise StoreError(self._path, "link")  # its log would be beside the file that the link names
            if not self._path.exists():
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
            with self._held().writing(connection):
                yield connection
            # A write to a deleted file succeeds, and no reader will ever see it.
            self._refuse_lost_files()
            if self._logged_pages >= _LOG_PAGES:
                # The block is already committed: the next caller meets this fault again.
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
            if self.unwritable:
                self._drop(always=True)
                self._connect()
            if self._writer is None:
                raise StoreError(self._path, self.unwritable or "closed")
            yield self._writer

    def empty_log(self) -> None:
        """Move written pages out of the log, unless other connections read it; then it stays until the log is full.

        Raises:
            StoreError: `not_erased`: the disk is full, so forgotten texts stay in the log.
        """
        try:
            with self.alone():
                self._clean(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except StoreError as error:
            if error.category != "disk_full":
                raise
            raise StoreError(self._path, "not_erased") from error

    def close(self) -> None:
        """Close all connections; a borrowed connection is closed when it is returned."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            self._drop(always=True)

    def _connect(self) -> None:
        if inode_of(self._path) == NO_INODE:
            raise StoreError(self._path, "missing")
        if self._path.stat().st_size == 0:
            raise StoreError(self._path, "emptied")
        try:
            self._writer, self._lease = Lease.open(self._path, self._prepared, seconds=self._patience)
        except _FAULTS as error:
            category = _category(error)
            if category not in UNWRITABLE:
                raise
            self._connect_reading("disk_full" if category == "disk_full" else "read_only", error)
        else:
            self.unwritable = ""
            _wait(self._writer, PATIENCE)
            self._cleaner = self._connection("cleaner")
            self._read_something(self._cleaner)
        # The file may be an older copy, in which owners have other numbers.
        self.owners = OwnerNumbers(self._damage)
        self._tell_losses()

    def _tell_losses(self) -> None:
        known, self._lost = self._lost, sum(each.commits for each in losses_of(self._path))
        if self._lost > known:
            self._loss_told(self._lost)

    def _connect_reading(self, category: str, why: Exception) -> None:
        """Serve reads alone; the next write tries again to open the store for writing."""
        self.unwritable = category
        try:
            connection, self._lease = Lease.open(self._path, self._viewed, seconds=self._patience, views=True)
        except _FAULTS:
            raise why from None
        close_unchanged(connection)

    def _viewed(self) -> apsw.Connection:
        connection = self._connection("reader")
        try:
            self.identity = view(connection, self._path, self._scripts, self.identity)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepared(self) -> apsw.Connection:
        connection = self._connection("writer")
        try:
            self.identity = prepare(connection, self._path, self._scripts, self.identity)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connection(self, kind: str) -> apsw.Connection:
        files = self._files.name if kind == "cleaner" else None
        seconds = _CLEANER_PATIENCE if kind == "cleaner" else self._patience
        if kind == "reader" and self.unwritable:
            connection = connect_reading(self._path, busy_seconds=seconds)
        else:
            connection = connect(self._path, busy_seconds=seconds, vfs=files)
        connection.pragma("cache_size", -_CACHE_KIB[kind])
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Without it SQLite plans a statement anew for each use, as a value might fit a partial index.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if kind != "cleaner":
            connection.set_wal_hook(self._logged)
        return connection

    def _read_something(self, connection: apsw.Connection) -> None:
        """Make SQLite open the log for a new connection, and check that it is the log of the others."""
        connection.pragma("schema_version")
        if self._lease is None or self._lease.fault():
            close_unchanged(connection)
            self._refuse_lost_files()

    def _reader(self) -> apsw.Connection:
        unwritable = self.unwritable
        connection = self._connection("reader")
        connection.pragma("query_only", 1)
        register(connection)
        self._read_something(connection)
        if unwritable == self.unwritable:
            return connection
        close_unchanged(connection)
        return self._reader()

    def _held(self) -> Lease:
        if self._lease is None:
            raise StoreError(self._path, "closed")
        return self._lease

    def _own(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(self._path, "forked")

    def _verify(self) -> None:
        self._own()
        if self._closed:
            raise StoreError(self._path, "closed")
        lease = self._lease
        if lease is not None and not lease.fault():
            return
        with self._lock:
            if self.unwritable:
                # Another process writes to the file now.
                self._drop()
            self._refuse_lost_files()
            if self._lease is None:
                self._connect()

    def _refuse_lost_files(self) -> None:
        """Raise if files lost their names since they were opened.

        Raises:
            StoreError: they did. The next call opens the files that have the names then.
        """
        with self._lock:
            fault = self._drop()
            if fault == "exchanged":
                # Another store in its place is a fault of its own.
                self._connect()
            if fault:
                raise StoreError(self._path, fault)

    def _drop(self, *, always: bool = False) -> str:
        """Close all connections if their files lost their names, or `always`; return what that has cost."""
        lease, cleaner = self._lease, self._cleaner
        fault = "" if lease is None else lease.fault()
        if lease is not None and cleaner is not None and always and not fault:
            fault = "overwritten" if lease.is_overwritten(cleaner) else ""
        if not (fault or always):
            return ""
        if lease is not None and cleaner is not None and fault:
            fault = lease.rescue(cleaner, fault)
        writer, self._writer, self._cleaner, self._lease = self._writer, None, None, None
        if writer is not None:
            close_unchanged(writer)
        self._readers.drop(partial(_end, lease, cleaner, fault))
        return fault

    def _logged(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._logged_pages = pages
        return apsw.SQLITE_OK

    def _clean(self, mode: int) -> None:
        """Checkpoint the log into the database; if others read it, the next write tries again."""
        if self._cleaner is not None:
            with contextlib.suppress(apsw.BusyError):
                self._held().checkpoint(self._cleaner, mode)
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
        except DamagedRow as error:
            self._afterwards("corrupt")
            raise StoreError(self._path, "corrupt") from error
        except faults() as error:
            categories = [category_of(error, connection) for connection in (self._writer, self._cleaner)]
            category = "disk_full" if "disk_full" in categories else categories[0]
            self._afterwards(category)
            raise StoreError(self._path, category) from error

    def _afterwards(self, category: str) -> None:
        if category not in _HARMLESS:
            with self._lock:
                self._drop(always=True)


def _end(lease: Lease | None, cleaner: apsw.Connection | None, fault: str) -> None:
    """Close the last connection, and release the lease.

    The cleaner is the last: it checkpoints the log into the database, unless the interpreter closes it at its own end,
    where the error would be lost.
    """
    if cleaner is not None and fault:
        close_unchanged(cleaner)
    elif cleaner is not None:
        with contextlib.suppress(apsw.Error):
            cleaner.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            cleaner.close()
    if lease is not None:
        lease.end()


def _category(error: Exception) -> str:
    return error.category if isinstance(error, (StoreError, DatabaseError)) else category_of(error)


def _wait(connection: apsw.Connection, seconds: float) -> None:
    connection.set_busy_timeout(round(seconds * 1_000))
