"""Writes small files whole or not at all, private and durable, while other processes write them too."""

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from beaver_toolkit.locks import PRIVATE, locked

STRAY_AFTER = 60.0
"""Seconds after which the process that wrote a temporary file counts as gone."""

HAS_DRIVE_CACHE = sys.platform == "darwin"
"""Whether `fsync` leaves content in the cache of the drive: on macOS another call empties it."""

_FULL_SYNC = 51
"""That call, `F_FULLFSYNC`: the module `fcntl` has its name on macOS only."""


def create_once(path: Path, content: bytes) -> bool:
    """Make `path` (0600) with `content` unless it exists; return whether this call made it.

    A reader sees the whole file or none: it is written and synced under a temporary name and then linked, which fails
    where the name is taken. Without hard links it is renamed under an exclusive lock (`beaver_toolkit.locks`).

    Raises:
        LocksMissing: the file system has neither hard links nor locks.
        OSError: it cannot be written.
    """
    with _written(path, content) as temporary:
        return _publish(temporary, path)


def replace(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Replace `path` with a file that holds `content`, whole or not at all.

    A process that writes what it has read and changed holds a lock meanwhile; see `beaver_toolkit.locks`.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    with _written(path, content) as temporary:
        if mode != PRIVATE:
            temporary.chmod(mode)
        temporary.replace(path)
        sync(path.parent)


def sweep(path: Path, *, older_than: float = STRAY_AFTER) -> None:
    """Remove the temporary files that killed processes left beside `path`.

    Args:
        path: the file that they belong to.
        older_than: their least age in seconds; 0 where the caller holds the lock of all writers.
    """
    for stray in path.parent.glob(f".{path.name}.*.tmp"):
        # Another process may sweep, or finish, at the same moment.
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime >= older_than:
                stray.unlink()


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable, where the system can."""
    # Windows cannot open a folder; a rename is all that it offers.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            flush(descriptor)
        finally:
            os.close(descriptor)


def flush(descriptor: int) -> None:
    """Make the content of an open file durable."""
    if HAS_DRIVE_CACHE:
        # Imported here because not every platform has it.
        import fcntl  # noqa: PLC0415

        # A network file system may not know the call.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _FULL_SYNC)
            return
    os.fsync(descriptor)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a synced temporary file beside `path`; remove it unless it has become `path`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        _write(temporary, content)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        flush(descriptor)


def _publish(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:
        return _publish_locked(temporary, path)
    sync(path.parent)
    return True


def _publish_locked(temporary: Path, path: Path) -> bool:
    with locked(path.with_name(f".{path.name}.lock")):
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        sync(path.parent)
        return True
