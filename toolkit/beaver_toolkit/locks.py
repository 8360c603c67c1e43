"""Gives one file to one holder at a time, among the threads and processes of this machine. Needs the extra `locks`."""

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

PRIVATE = 0o600
POLL_SECONDS = 0.005


class LocksMissing(OSError):
    """The file system has no locks."""

    def __init__(self) -> None:
        super().__init__(errno.ENOLCK, "this file system has no file locks")


class LockTimeout(TimeoutError):
    """Another thread or process holds the lock for longer than the caller waits."""


@contextlib.contextmanager
def locked(
    path: Path, *, seconds: float | None = None, on_acquired: Callable[[int], None] | None = None
) -> Iterator[None]:
    """Hold the exclusive lock of the file `path` for a block. The file is made (0600) if it is missing, and stays.

    The lock ends with the process, however the process ends. A symbolic link is refused.

    Args:
        path: the lock file.
        seconds: how long to wait for another holder; `None` waits as long as it takes, 0 does not wait.
        on_acquired: called with the descriptor of the lock file while the lock is held.

    Raises:
        LockTimeout: another holder kept it for `seconds`.
        LocksMissing: the file system has no locks.
        OSError: the file cannot be made or opened.
    """
    # The library would make the folder, readable for other users.
    path.parent.stat()
    # Imported late, because it takes some milliseconds.
    from filelock import FileLock, Timeout  # noqa: PLC0415

    lock = FileLock(
        path,
        timeout=-1 if seconds is None else seconds,
        mode=PRIVATE,
        poll_interval=POLL_SECONDS,
        # A lock by the existence of a file would outlive a killed process.
        fallback_to_soft=False,
        on_acquired=on_acquired,
    )
    try:
        lock.acquire()
    except Timeout:
        raise LockTimeout(f"another process holds {path}") from None
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise LocksMissing from None
        raise
    try:
        yield
    finally:
        lock.release()
