"""One connection to one SQLite file, for one thread at a time."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from beaver_toolkit.files import create_once, sweep
from beaver_toolkit.sqlite.connections import connect, immediate, inode_of, make_durable
from beaver_toolkit.sqlite.errors import DatabaseError, driver, translated
from beaver_toolkit.sqlite.migrations import migrate, version_of

if TYPE_CHECKING:
    import apsw


class Database:
    """An open database. A commit is durable when it returns, and a write transaction takes its lock at the beginning.

    Attributes:
        connection: for statements inside `transaction`, or for reading.
    """

    def __init__(self, connection: "apsw.Connection", path: Path) -> None:
        self.connection = connection
        self._path = path
        self._inode = inode_of(path)

    @classmethod
    def open(cls, path: Path, migrations: Sequence[str], *, secure_delete: bool = False) -> Self:
        """Open a database for writing; make it, or migrate it, where that is needed.

        Raises:
            DatabaseError: it cannot be opened, or is a symbolic link. It is never replaced by a new one.
        """
        with translated():
            sweep(path)
            if path.is_symlink():
                raise DatabaseError("not_ours")  # writes would go to the file that the link names
            # Made here, so that it is private from its first moment; SQLite gives -wal and -shm its mode.
            if not path.exists():
                create_once(path, b"")
            connection = connect(path)
            with _closed_on_error(connection):
                if connection.readonly("main"):
                    raise DatabaseError("read_only")
                make_durable(connection, secure_delete=secure_delete)
                migrate(connection, migrations)
            return cls(connection, path)

    @classmethod
    def read(cls, path: Path, migrations: Sequence[str], *, busy_seconds: float | None = None) -> Self:
        """Open a database for reading.

        Raises:
            DatabaseError: it is missing, cannot be opened, or a newer version of the program wrote it.
        """
        with translated():
            if not path.exists():
                raise DatabaseError("missing")
            connection = connect(path, busy_seconds=busy_seconds)
            with _closed_on_error(connection):
                connection.pragma("query_only", 1)
                if version_of(connection) > len(migrations):
                    raise DatabaseError("newer")
            return cls(connection, path)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(driver().Error):
            self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator["apsw.Connection"]:
        """Hold the write lock for a block; commit at its end, durably, or roll all of it back.

        Raises:
            DatabaseError: nothing of the block was written, or the file no longer has its name.
        """
        with translated():
            with immediate(self.connection):
                yield self.connection
            # Writing to a file that was deleted succeeds, and no process will ever read it.
            if inode_of(self._path) != self._inode:
                raise DatabaseError("missing")


@contextlib.contextmanager
def _closed_on_error(connection: "apsw.Connection") -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
