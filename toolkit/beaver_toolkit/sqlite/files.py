"""Makes SQLite files whole or not at all, and copies them before a migration."""

import contextlib
import glob
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_toolkit.files import STRAY_AFTER, create_once, sync
from beaver_toolkit.locks import PRIVATE
from beaver_toolkit.sqlite.connections import connect
from beaver_toolkit.sqlite.errors import driver
from beaver_toolkit.sqlite.migrations import version_of

if TYPE_CHECKING:
    import apsw

_PAGE_SIZE = slice(16, 18)
"""Where the header of a database has the size of a page."""

_FORMATS, _WRITE_AHEAD = slice(18, 20), b"\2\2"
"""Where the header of a database says how it is written and read, and the value for a write-ahead log."""


def make(path: Path, fill: "Callable[[apsw.Connection], None]") -> None:
    """Make a new database that other processes see whole or not at all; keep one that another process has made.

    It is made in memory: on a disk, each step of a new database waits for it several times.

    Args:
        path: the database; no log of an earlier one is beside it.
        fill: makes the schema.

    Raises:
        LocksMissing: the file system has neither hard links nor locks.
        OSError: it cannot be written.
    """
    with contextlib.closing(driver().Connection(":memory:")) as connection:
        fill(connection)
        content = bytearray(_cleared(connection.serialize("main")))
    content[_FORMATS] = _WRITE_AHEAD
    create_once(path, bytes(content))


def _cleared(content: bytes) -> bytes:
    """Return a database without the copies of cells that its migrations left in the gaps of pages."""
    from beaver_toolkit.sqlite.secure_delete import cleared  # noqa: PLC0415 - it imports the driver

    size = int.from_bytes(content[_PAGE_SIZE])
    return b"".join(cleared(content[start : start + size], first=not start) for start in range(0, len(content), size))


def back_up(connection: "apsw.Connection", path: Path, version: int) -> Path:
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
    # Private from its first moment; SQLite gives -wal and -shm the mode of the database.
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    try:
        yield draft
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
