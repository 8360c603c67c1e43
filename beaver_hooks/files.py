"""Writes small files whole or not at all, private and durable, whatever other processes do at the same time."""

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

STRAY_AFTER = 60.0
"""Seconds after which a temporary file belongs to nobody any more."""


_PRIVATE = 0o600


class LocksMissing(OSError):
    """Files cannot be locked on this system."""

    def __init__(self) -> None:
        super().__init__(errno.ENOLCK, "this system has no file locks")


def create_once(path: Path, content: bytes) -> bool:
    """Make `path` (0600) with `content` unless it exists; say whether it was made here.

    Whoever sees the file sees all of it: it is written and synced under a temporary name, and then linked,
    which fails where the name is taken. A file system without hard links is written under an exclusive lock
    instead.

    Raises:
        LocksMissing: there are neither hard links nor file locks.
        OSError: it cannot be written.
    """
    with _written(path, content) as temporary:
        return _publish(temporary, path)


def replace(path: Path, content: bytes, *, mode: int = _PRIVATE) -> None:
    """Put a file with `content` in the place of `path`, whole or not at all.

    Two processes that change what they read must hold a lock while they do; see `locked`.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    with _written(path, content) as temporary:
        if mode != _PRIVATE:
            temporary.chmod(mode)
        temporary.replace(path)
        sync_folder(path.parent)


def sweep(path: Path, *, older_than: float = STRAY_AFTER) -> None:
    """Remove the temporary files that killed processes left beside `path`.

    Args:
        path: the file that they were to become.
        older_than: their least age in seconds; 0 where a lock says that nobody else is writing.
    """
    for stray in path.parent.glob(f".{path.name}.*.tmp"):
        # Another process may sweep, or finish, at the same moment.
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime >= older_than:
                stray.unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock that the file `path` stands for; it is made if need be, and stays.

    Raises:
        LocksMissing: this system has no file locks.
        OSError: the file cannot be made or locked.
    """
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it, and importing this module must work there
    except ImportError:
        raise LocksMissing from None
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable, where the system can."""
    # Windows cannot open a folder; there the rename itself is all there is.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """Give a synced temporary file beside `path`, and take it away unless it has become `path`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        _write(temporary, content)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _publish(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:
        return _publish_locked(temporary, path)
    sync_folder(path.parent)
    return True


def _publish_locked(temporary: Path, path: Path) -> bool:
    with locked(path.with_name(f".{path.name}.lock")):
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        sync_folder(path.parent)
        return True
