"""Makes SQLite files whole or not at all, and copies them before a migration."""

import contextlib
import glob
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from beaver_toolkit.files import STRAY_AFTER, sync
from beaver_toolkit.locks import PRIVATE
from beaver_toolkit.sqlite.connections import connect
from beaver_toolkit.sqlite.migrations import version_of


def make(path: Path, fill: Callable[[apsw.Connection], None], *, vfs: str | None = None) -> None:
    """Make a new database that other processes see whole or not at all; keep one that another process has made.

    Args:
        path: the database.
        fill: makes the schema.
        vfs: the name of the file layer to write with.
    """
    with _draft(path) as draft:
        connection = connect(draft, vfs=vfs)
        try:
            connection.pragma("journal_mode", "WAL")
            fill(connection)
        finally:
            # Removes its log, too.
            connection.close()
        sync(draft)
        _publish(draft, path)
    sync(path.parent)


def back_up(connection: apsw.Connection, path: Path, version: int) -> Path:
    """Copy a database of this version to `<name>.v<version>.bak` beside it, durably; return the path of the copy.

    Where another process has migrated it meanwhile, the copy that this process has made stays.
    """
    target = path.with_name(f"{path.name}.v{version}.bak")
    with _draft(path) as draft:
        copy = connect(draft)
        try:
            with copy.backup("main", connection, "main") as backup:
                backup.step()
            is_as_before = version_of(copy) == version
        finally:
            copy.close()
        if is_as_before:
            sync(draft)
            draft.replace(target)
    sync(path.parent)
    return target


def drop_backups(path: Path) -> None:
    """Delete the copies that `back_up` has made."""
    for copy in path.parent.glob(f"{glob.escape(path.name)}.v*.bak"):
        copy.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove the drafts that killed processes left beside `path`."""
    for stray in path.parent.glob(f".{glob.escape(path.name)}.*.tmp*"):
        # Another process may sweep, or finish, at the same moment.
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime >= STRAY_AFTER:
                stray.unlink()


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Yield an empty private file beside `path`, and remove it if it is still there at the end."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    _claim(draft)
    try:
        yield draft
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)


def _claim(path: Path) -> None:
    # Private from its first moment; SQLite gives -wal and -shm the mode of the database.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links: claim the name first, which fails where it is taken.
        with contextlib.suppress(FileExistsError):
            _claim(path)
            draft.replace(path)
