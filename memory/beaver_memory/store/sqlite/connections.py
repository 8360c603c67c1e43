"""Opens the file of the store, lends its connections, and turns faults of the file into store errors.

One connection writes, behind a lock. Another one, the only one that goes through `clearing`, checkpoints the log into
the database, so that no commit waits for the interpreter half-way. Readers borrow one of a few others for one question;
SQLite lets them read during a write. Before each use the connector checks the file: if it was removed or
replaced, it raises an error instead of writing to a lost file. The same holds for its log and the log's index.

The connections that were opened together are one set, with the lease of their files. After a fault the whole set is
out of use, and the next use opens another one. A reader keeps the connection that it borrowed until its question is
answered.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import apsw

from beaver_memory.errors import DamagedRow, StoreError
from beaver_memory.store.sqlite.owners import Damage, OwnerNumbers
from beaver_memory.store.sqlite.preparation import PACKAGE, make_unless_there_is_a_log, prepare, register, view
from beaver_toolkit.sqlite.connection_set import ConnectionSet
from beaver_toolkit.sqlite.connections import NO_INODE, close_unchanged, connect, connect_reading, inode_of
from beaver_toolkit.sqlite.errors import UNWRITABLE, DatabaseError, category_of
from beaver_toolkit.sqlite.files import sweep
from beaver_toolkit.sqlite.lease import Lease
from beaver_toolkit.sqlite.losses import losses_of
from beaver_toolkit.sqlite.migrations import read_migrations
from beaver_toolkit.sqlite.secure_delete import ClearingFiles

PATIENCE = 30.0
"""Seconds to wait for other processes that lock the file."""

_CLEANER_PATIENCE = 0.2
_CACHE_KIB = {"reader": 8_192, "view": 8_192, "writer": 32_768, "cleaner": 1_024}
_LOG_PAGES = 1_000

LossTold = Callable[[int], object]
"""Receives the number of acknowledged commits that are missing from the database."""

_FAULTS = (StoreError, DatabaseError, DamagedRow, apsw.Error, OSError, UnicodeDecodeError)

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
        self._connections: ConnectionSet | None = None
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
        with self._faults() as use:
            while True:
                use.connections = self._current()
                with use.connections.reading() as connection:
                    # There is none if the set went out of use since the line above.
                    if connection is not None:
                        yield connection
                        return

    @contextlib.contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Hold the write lock for a block; commit at its end, durably, or undo all of it.

        Raises:
            StoreError: nothing of the block was written, or the file no longer has its name.
        """
        with self._for_writing() as (connections, connection):
            with connections.lease.writing(connection):
                yield connection
            # A write to a deleted file succeeds, and no reader will ever see it.
            self._refuse_lost_files()
            if connections.logged_pages >= _LOG_PAGES:
                # The block is already committed: the next caller meets this fault again.
                with contextlib.suppress(apsw.Error):
                    connections.clean(apsw.SQLITE_CHECKPOINT_PASSIVE)

    @contextlib.contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """Lend the writing connection without a transaction.

        Raises:
            StoreError: the store cannot be used.
        """
        with self._for_writing() as (_, connection):
            yield connection

    def empty_log(self) -> None:
        """Move written pages out of the log, unless other connections read it; then it stays until the log is full.

        Raises:
            StoreError: `not_erased`: the disk is full, so forgotten texts stay in the log.
        """
        try:
            with self._for_writing() as (connections, _):
                connections.clean(apsw.SQLITE_CHECKPOINT_TRUNCATE)
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
            self._give_up(self._connections)

    @property
    def unwritable(self) -> str:
        """Why the store can only be read, as a category; empty if it can be written, or is not open."""
        connections = self._connections
        return "" if connections is None else connections.unwritable

    @contextlib.contextmanager
    def _for_writing(self) -> Iterator[tuple[ConnectionSet, apsw.Connection]]:
        """Lend the set in use and its writing connection."""
        self._own()
        with self._lock, self._faults() as use:
            connections = self._verified()
            if connections.writer is None:
                self._give_up(connections)
                connections = self._connect()
            if connections.writer is None:
                raise StoreError(self._path, connections.unwritable)
            use.connections = connections
            yield connections, connections.writer

    def _connect(self) -> ConnectionSet:
        if inode_of(self._path) == NO_INODE:
            raise StoreError(self._path, "missing")
        if self._path.stat().st_size == 0:
            raise StoreError(self._path, "emptied")
        try:
            self._connections = connections = self._opened()
        except _FAULTS as error:
            category = _category(error)
            if category not in UNWRITABLE:
                raise
            unwritable = "disk_full" if category == "disk_full" else "read_only"
            self._connections = connections = self._viewed(unwritable, error)
        # The file may be an older copy, in which owners have other numbers.
        self.owners = OwnerNumbers(self._damage)
        self._tell_losses()
        return connections

    def _tell_losses(self) -> None:
        known, self._lost = self._lost, sum(each.commits for each in losses_of(self._path))
        if self._lost > known:
            self._loss_told(self._lost)

    def _opened(self) -> ConnectionSet:
        """Open the files for writing."""
        first = partial(self._first, "writer", prepare)
        writer, lease = Lease.open(self._path, first, seconds=self._patience)
        connections = ConnectionSet(lease, partial(self._beside, lease, "reader"), writer=writer)
        try:
            writer.set_busy_timeout(round(PATIENCE * 1_000))
            connections.cleaner = self._beside(lease, "cleaner")
        except BaseException:
            connections.retire("")
            raise
        if connections.cleaner is None:
            raise StoreError(self._path, connections.retire(lease.fault()))
        return connections

    def _viewed(self, unwritable: str, why: Exception) -> ConnectionSet:
        """Open the files for reading alone; the next write tries again to open them for writing."""
        try:
            first = partial(self._first, "view", view)
            connection, lease = Lease.open(self._path, first, seconds=self._patience, views=True)
        except _FAULTS:
            raise why from None
        close_unchanged(connection)
        return ConnectionSet(lease, partial(self._beside, lease, "view"), unwritable=unwritable)

    def _first(
        self, kind: str, identify: Callable[[apsw.Connection, Path, Sequence[str], str], str]
    ) -> apsw.Connection:
        """Open the connection that a lease begins with, and read the identity of the store."""
        connection = self._connection(kind)
        try:
            self.identity = identify(connection, self._path, self._scripts, self.identity)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connection(self, kind: str) -> apsw.Connection:
        files = self._files.name if kind == "cleaner" else None
        seconds = _CLEANER_PATIENCE if kind == "cleaner" else self._patience
        if kind == "view":
            connection = connect_reading(self._path, busy_seconds=seconds)
        else:
            connection = connect(self._path, busy_seconds=seconds, vfs=files)
        connection.pragma("cache_size", -_CACHE_KIB[kind])
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Without it SQLite plans a statement anew for each use, as a value might fit a partial index.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    def _beside(self, lease: Lease, kind: str) -> apsw.Connection | None:
        """Open a connection beside those of a lease; return `None` if the files have lost their names."""
        connection = self._connection(kind)
        try:
            if kind != "cleaner":
                connection.pragma("query_only", 1)
                register(connection)
            # SQLite opens the log now.
            connection.pragma("schema_version")
            is_intact = not lease.fault()
        except BaseException:
            close_unchanged(connection)
            raise
        if is_intact:
            return connection
        close_unchanged(connection)
        return None

    def _own(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(self._path, "forked")

    def _current(self) -> ConnectionSet:
        """Return the set in use, or a new one after its files lost their names.

        Raises:
            StoreError: see `_refuse_lost_files`, or the files cannot be opened.
        """
        connections = self._connections
        if connections is None or connections.lease.fault():
            with self._lock:
                connections = self._verified()
        return connections

    def _verified(self) -> ConnectionSet:
        """Do what `_current` does; the lock is held."""
        if self._closed:
            raise StoreError(self._path, "closed")
        self._refuse_lost_files()
        return self._connections or self._connect()

    def _refuse_lost_files(self) -> None:
        """Take the set out of use if its files lost their names; the lock is held.

        Raises:
            StoreError: they did, and they could be written. The next call opens the files that have the names then.
        """
        connections = self._connections
        if connections is None or not (fault := connections.lease.fault()):
            return
        self._connections, fault = None, connections.retire(fault)
        if connections.unwritable:
            # Another process writes to the file now.
            return
        if fault == "exchanged":
            # Another store in its place is a fault of its own.
            self._connect()
        raise StoreError(self._path, fault)

    def _give_up(self, connections: ConnectionSet | None) -> None:
        """Take a set out of use, unless another one has followed it."""
        with self._lock:
            if connections is not None and connections is self._connections:
                self._connections = None
                connections.retire(connections.fault())

    @contextlib.contextmanager
    def _faults(self) -> "Iterator[_Use]":
        use = _Use()
        try:
            yield use
        except _FAULTS as error:
            category = _category(error, use.connections)
            if category not in _HARMLESS:
                self._give_up(use.connections)
            if isinstance(error, StoreError):
                raise
            raise StoreError(self._path, category) from error


class _Use:
    """What one caller does with the store: the set that its faults concern, once there is one."""

    connections: ConnectionSet | None = None


def _category(error: Exception, connections: ConnectionSet | None = None) -> str:
    if isinstance(error, (StoreError, DatabaseError)):
        return error.category
    if isinstance(error, DamagedRow):
        return "corrupt"
    both = (None, None) if connections is None else (connections.writer, connections.cleaner)
    first, second = (category_of(error, connection) for connection in both)
    return second if second == "disk_full" else first
