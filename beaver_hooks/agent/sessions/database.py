"""Opens the database of sessions; turns its faults into sentences with a remedy."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.file_trust import StateFiles
from beaver_toolkit.queries import Queries
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.losses import drop_damaged_logs
from beaver_toolkit.sqlite.migrations import read_migrations

if TYPE_CHECKING:
    import apsw

DATABASE = "sessions.db"
FILES = tuple(f"{DATABASE}{end}" for end in ("", "-wal", "-shm", "-journal"))
"""The database, and SQLite's files beside it: SQLite applies a log that it finds there to the database."""

PACKAGE = "beaver_hooks.agent.sessions"
SQL = Queries(Path(__file__).with_name("queries.sql"))

_REMEDIES = {
    "locked": "is locked by another process; end that process or try again",
    "disk_full": "cannot grow: the disk is full; make room and try again",
    "read_only": "is read-only; check who owns it and its folder",
    "cannot_open": "cannot be opened; check who owns it and its folder",
    "corrupt": "is damaged; move it (with its -wal and -shm files) away, or restore it from a backup",
    "io_error": "cannot be read or written; check the disk",
    "not_ours": "is not a database of sessions; move it away",
    "broken": "is not a database of sessions; move it away",
    "newer": "was written by a newer version of Beaver Hooks; update this one",
    "link": "is a symbolic link; put the file itself in its place",
    "exchanged": "was replaced while it was in use; try again to use the file that is there now",
    "log_removed": "lost its -wal or -shm file while it was in use; nothing stored is lost; try again",
    "log_lost": "lost its -wal file while it was in use; the newest messages may be lost; try again",
    "in_use": "is used by a process that has lost its -wal or -shm file; end that process, or try again",
    "overwritten": "was overwritten while it was in use; nothing of this was stored; run `beaver doctor`",
    "missing": "disappeared while it was in use; restore it, or try again to start with an empty one",
    "closed": "is closed; open the store again",
    "forked": "was opened by another process; open a store in this process",
}


def refuse_listed(folder: Path, files: StateFiles) -> None:
    """Refuse conversations that may have come with a repository: a resumed one counts as the user's own.

    The check is by name, because SQLite may already have applied a listed log and removed its file.

    Raises:
        StorageError: git's index certainly lists one of their files.
    """
    listed = next((path for name in FILES if files.is_listed(path := folder / name)), None)
    if listed is not None:
        raise StorageError(
            f"Git's index lists {listed}, so the conversations in {DATABASE} may be another person's. If they are"
            f" yours, run `git rm --cached {listed}`; else run `git rm -f {listed}`, which deletes the file."
        )


def storage_error(folder: Path, category: str) -> StorageError:
    """Return the error for a category, with its remedy."""
    remedy = _REMEDIES.get(category, "cannot be used; see `beaver doctor`")
    return StorageError(f"The session store {folder / DATABASE} {remedy}.")


class SessionDatabase:
    """The database of sessions, opened on first use, and again after a failure. Used by one thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / DATABASE
        self._database: Database | None = None

    def connection(self) -> "apsw.Connection":
        """Return the open connection.

        Raises:
            DatabaseError: it cannot be opened, is no database of sessions, or lost a file; a new one never replaces it.
        """
        return self._opened().connection

    @contextlib.contextmanager
    def writing(self) -> Iterator["apsw.Connection"]:
        """Hold the write lock for a block; commit at its end, durably, or roll all of it back.

        Raises:
            DatabaseError: the block was not written, or the file no longer has its name.
        """
        with self._opened().transaction() as connection:
            yield connection

    @property
    def unwritable(self) -> str:
        """Why the database can only be read, as a category; empty if it can be written."""
        return self._opened().unwritable

    def empty_log(self) -> None:
        """Move the log into the database, unless another process reads it: deleted texts are gone then."""
        self._opened().empty_log()
        drop_damaged_logs(self._path)

    def close(self) -> None:
        """Close the connection, if there is one."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _opened(self) -> Database:
        if self._database is None:
            self._database = Database.open_or_view(self._path, read_migrations(PACKAGE), secure_delete=True)
        self._database.verify()
        return self._database
