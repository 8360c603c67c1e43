"""The lock on the small file beside a database that its lease holds; the file records what the lease knows."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from beaver_toolkit.locks import PRIVATE
from beaver_toolkit.sqlite.connections import inode_of
from beaver_toolkit.sqlite.errors import DatabaseError

MARK = b"!"
"""In the record: a process has noticed other files by these names."""

_MOST_RECORDED = 200


def lock_file(path: Path) -> Path:
    """Return the lock file of a database."""
    return path.with_name(f".{path.name}.open.lock")


def open_lock(path: Path) -> int | None:
    """Open the lock file; `None` in a folder that cannot be written, and on a system or a disk without such locks."""
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it; there an open file cannot be removed

        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return lock
    except OSError:
        os.close(lock)
        return None
    fcntl.flock(lock, fcntl.LOCK_UN)
    return lock


def take(lock: int, *, shared: bool) -> bool:
    """Take the lock, or change its kind; return whether it was free."""
    import fcntl  # noqa: PLC0415 - see `open_lock`

    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(lock: int) -> None:
    """Release the lock."""
    import fcntl  # noqa: PLC0415 - see `open_lock`

    # A forked child has the same lock: closing alone would leave it to the child.
    fcntl.flock(lock, fcntl.LOCK_UN)


def record_in(lock: int) -> bytes:
    """Return the content of the lock file."""
    return os.pread(lock, _MOST_RECORDED, 0)


def is_at(lock: int, path: Path) -> bool:
    """Return whether the lock file still has its name: the process that releases it last removes it."""
    found = os.fstat(lock)
    return inode_of(path) == (found.st_dev, found.st_ino)


@contextlib.contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Keep connections from opening a database for a block, so that a file can be put in its place.

    Raises:
        DatabaseError: `in_use`: a process has it open, or a database that lost its name.
    """
    lock = open_lock(lock_file(path))
    if lock is None:
        yield
        return
    try:
        if not take(lock, shared=False) or not is_at(lock, lock_file(path)):
            raise DatabaseError("in_use")
        try:
            yield
        finally:
            # Removed under the lock: a process that waits for it finds that the file has lost its name.
            if MARK not in record_in(lock):
                with contextlib.suppress(OSError):
                    lock_file(path).unlink()
            release(lock)
    finally:
        os.close(lock)


def is_leased(path: Path) -> bool:
    """Return whether a process may have a database open, or one that lost this name; makes no file."""
    lock = open_lock(lock_file(path)) if lock_file(path).exists() else None
    if lock is None:
        return False
    try:
        return not take(lock, shared=False)
    finally:
        release(lock)
        os.close(lock)
