"""One connection to one SQLite file, for one thread at a time."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from beaver_toolkit.files import create_once, sweep
from beaver_toolkit.sqlite import connections
from beaver_toolkit.sqlite.connections import close_unchanged, connect, connect_reading, make_durable
from beaver_toolkit.sqlite.errors import UNWRITABLE, DatabaseError, category_of, driver, faults, translated
from beaver_toolkit.sqlite.files import make
from beaver_toolkit.sqlite.lease import Lease
from beaver_toolkit.sqlite.losses import begin_anew
from beaver_toolkit.sqlite.migrations import migrate, version_of

if TYPE_CHECKING:
    import apsw


class Database:
    """An open database. A commit is durable when it returns, and a write transaction takes its lock at the beginning.

    Attributes:
        connection: for statements inside `transaction`, or for reading after `verify`.
        unwritable: why it can only be read, as a category; empty if it can be written.
    """

    def __init__(self, connection: "apsw.Connection", lease: Lease, *, unwritable: str = "") -> None:
        self.connection = connection
        self.unwritable = unwritable
        self._lease = lease

    @classmethod
    def open(cls, path: Path, migrations: Sequence[str], *, secure_delete: bool = False) -> Self:
        """Open a database for writing; make it, or migrate it, where that is needed.

        Raises:
            DatabaseError: it cannot be opened, or is a symbolic link. It is never replaced by a new one.
        """

        def writer() -> "apsw.Connection":
            connection = connect(path)
            with _closed_on_error(connection):
                if connection.readonly("main"):
                    raise DatabaseError("read_only")
                make_durable(connection, secure_delete=secure_delete)
                migrate(connection, migrations)
            return connection

        with translated():
            sweep(path)
            if path.is_symlink():
                raise DatabaseError("link")  # its log would be beside the file that the link names
            if not path.exists():
                begin_anew(path)
                _make(path, migrations)
            return cls(*Lease.open(path, writer, seconds=connections.BUSY_SECONDS))

    @classmethod
    def read(cls, path: Path, migrations: Sequence[str], *, busy_seconds: float | None = None) -> Self:
        """Open a database for reading.

        Raises:
            DatabaseError: it is missing, cannot be opened, or a newer version of the program wrote it.
        """

        def reader() -> "apsw.Connection":
            connection = connect(path, busy_seconds=busy_seconds)
            with _closed_on_error(connection):
                connection.pragma("query_only", 1)
                if version_of(connection) > len(migrations):
                    raise DatabaseError("newer")
            return connection

        with translated():
            if not path.exists():
                raise DatabaseError("missing")
            seconds = connections.BUSY_SECONDS if busy_seconds is None else busy_seconds
            try:
                return cls(*Lease.open(path, reader, seconds=seconds))
            except faults() as error:
                if category_of(error) not in UNWRITABLE:
                    raise
                return cls._view(path, migrations, DatabaseError(category_of(error)))

    @classmethod
    def open_or_view(cls, path: Path, migrations: Sequence[str], *, secure_delete: bool = False) -> Self:
        """Open a database for writing; where that is impossible, for reading.

        Raises:
            DatabaseError: it cannot be read either.
        """
        try:
            return cls.open(path, migrations, secure_delete=secure_delete)
        except DatabaseError as error:
            if error.category not in UNWRITABLE or not path.exists() or path.is_symlink():
                raise
            return cls._view(path, migrations, error)

    @classmethod
    def _view(cls, path: Path, migrations: Sequence[str], why: DatabaseError) -> Self:
        def reader() -> "apsw.Connection":
            connection = connect_reading(path)
            with _closed_on_error(connection):
                if version_of(connection) != len(migrations):
                    raise why  # a migration would have to write
            return connection

        try:
            connection, lease = Lease.open(path, reader, seconds=connections.BUSY_SECONDS, views=True)
        except faults() as error:
            raise why from error
        category = "disk_full" if why.category == "disk_full" else "read_only"
        return cls(connection, lease, unwritable=category)

    def close(self) -> None:
        """Close the connection."""
        if self._lease.fault() or self._lease.is_overwritten(self.connection):
            self._give_up(self._lease.fault())
            return
        with contextlib.suppress(driver().Error):
            self.connection.close()
        self._lease.end()

    def verify(self) -> None:
        """Raise unless the files that the connection opened still have their names.

        Raises:
            DatabaseError: they were removed or replaced. The connection is closed then.
        """
        if fault := self._lease.fault():
            raise DatabaseError(self._give_up(fault))

    @contextlib.contextmanager
    def transaction(self) -> Iterator["apsw.Connection"]:
        """Hold the write lock for a block; commit at its end, durably, or roll all of it back.

        Raises:
            DatabaseError: nothing of the block was written, or a file lost its name before the end.
        """
        if self.unwritable:
            raise DatabaseError(self.unwritable)
        with translated(self.connection):
            self.verify()
            try:
                with self._lease.writing(self.connection):
                    yield self.connection
            except DatabaseError:
                self.verify()
                raise
            # Writing to a file that was deleted succeeds, and no process will ever read it.
            self.verify()

    def empty_log(self) -> None:
        """Move the log into the database; if another process reads it, the next call or the last close does."""
        with contextlib.suppress(driver().BusyError):
            self._lease.checkpoint(self.connection, driver().SQLITE_CHECKPOINT_TRUNCATE)

    def _give_up(self, fault: str) -> str:
        """Close the connection to files that lost their names; return what that has cost, as a category."""
        found = self._lease.rescue(self.connection, fault)
        close_unchanged(self.connection)
        self._lease.end()
        return found


def _make(path: Path, migrations: Sequence[str]) -> None:
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        # SQLite would read the log of a lost database as part of a new one, unless that is empty.
        create_once(path, b"")
    else:
        make(path, partial(migrate, scripts=migrations))


@contextlib.contextmanager
def _closed_on_error(connection: "apsw.Connection") -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
