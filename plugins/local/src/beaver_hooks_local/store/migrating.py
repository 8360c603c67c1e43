"""Brings a database to the schema of this version: forward only, and never without a copy of what was there."""

import contextlib
import glob
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import apsw

from beaver_hooks_local.store.clearing import ClearingFiles

APPLICATION = 1111836238
"""What marks a file as a store of memories."""

STRAY_AFTER = 60.0
"""Seconds after which a temporary file belongs to nobody any more."""

_VERSIONS = "CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT"


def migrations() -> tuple[str, ...]:
    """Return the scripts, oldest first; the version of a database is the number of those it has had."""
    folder = files("beaver_hooks_local.store") / "migrations"
    scripts = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return tuple(script.read_text("utf-8") for script in scripts)


def version_of(connection: apsw.Connection) -> int:
    """Return the version of a store, 0 for a database that has none."""
    if not connection.table_exists("main", "schema_version"):
        return 0
    return int(connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").get)


@contextlib.contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
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


def migrate(connection: apsw.Connection, scripts: Sequence[str]) -> None:
    """Apply what a database has not had, in one transaction."""
    with immediate(connection):
        # Read under the lock: another process may have been faster.
        done = version_of(connection)
        if done == 0:
            connection.execute(_VERSIONS)
        for number, script in enumerate(scripts[done:], done + 1):
            connection.execute(script)
            connection.execute("INSERT INTO schema_version VALUES (?, ?)", (number, time.time_ns() // 1000))


def back_up(connection: apsw.Connection, path: Path, version: int) -> Path:
    """Copy a database as it stands to `<name>.v<version>.bak` beside it, durably; return where it is.

    Where another process has brought it further meanwhile, what is there already stays: it is the copy of that process.
    """
    target = path.with_name(f"{path.name}.v{version}.bak")
    with temporary(path) as copy:
        other = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with other.backup("main", connection, "main") as backup:
                backup.step()
            is_as_before = version_of(other) == version
        finally:
            other.close()
        if is_as_before:
            sync(copy)
            copy.replace(target)
    sync(path.parent)
    return target


def drop_backups(path: Path) -> None:
    """Delete the copies that `back_up` has made."""
    for copy in path.parent.glob(f"{glob.escape(path.name)}.v*.bak"):
        copy.unlink(missing_ok=True)


def make(path: Path, scripts: Sequence[str]) -> None:
    """Make a new database that is seen whole or not at all; leave one alone that another process made meanwhile."""
    with temporary(path) as draft:
        clearing = ClearingFiles()
        connection = apsw.Connection(str(draft), flags=apsw.SQLITE_OPEN_READWRITE, vfs=clearing.name)
        try:
            connection.pragma("journal_mode", "WAL")
            migrate(connection, scripts)
        finally:
            # Takes its log away, too.
            connection.close()
        sync(draft)
        _publish(draft, path)
    sync(path.parent)


def sweep(path: Path) -> None:
    """Remove the drafts that killed processes left beside `path`."""
    for stray in path.parent.glob(f".{glob.escape(path.name)}.*.tmp*"):
        # Another process may sweep, or finish, at the same moment.
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime >= STRAY_AFTER:
                stray.unlink()


@contextlib.contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Give an empty private file beside `path`, and take it away if it is still there at the end."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    # Ours to make, so that it is private from its first moment; SQLite gives -wal and -shm its mode.
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        for name in (draft.name, f"{draft.name}-wal", f"{draft.name}-shm", f"{draft.name}-journal"):
            draft.with_name(name).unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable, where the system can."""
    # Windows cannot open a folder; there the rename itself is all there is.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links: claim the name first, which fails where it is taken.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            draft.replace(path)
