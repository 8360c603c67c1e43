"""Makes a file exactly once, whole and private, however many processes try at the same time."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from beaver_hostspecs import AuditUnavailable

STRAY_AFTER = 60.0
"""Seconds after which a temporary file belongs to nobody any more."""


def create_once(path: Path, content: bytes) -> bool:
    """Make `path` (0600) with `content` unless it exists; say whether it was made here.

    Whoever sees the file sees all of it: it is written and synced under a temporary name, and then linked,
    which fails where the name is taken. A file system without hard links is written under an exclusive lock
    instead.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    _write(temporary, content)
    try:
        return _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove the temporary files that killed processes left beside `path`."""
    for stray in path.parent.glob(f".{path.name}.*.tmp"):
        # Another process may sweep, or finish, at the same moment.
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime > STRAY_AFTER:
                stray.unlink()


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


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
    with _locked(path.with_name(f".{path.name}.lock")):
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        sync_folder(path.parent)
        return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it, and does not come here: it has hard links
    except ImportError:
        raise AuditUnavailable(f"{path.parent} has neither hard links nor file locks; use another disk") from None
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
