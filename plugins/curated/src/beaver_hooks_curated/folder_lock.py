"""One writer per folder: a lock with a deadline, which says who holds it."""

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from beaver_hooks_curated.errors import MemoryLocked, MemoryUnwritable

LOCK_FILE = ".lock"
_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_LONGEST_NOTE = 500
_PRIVATE = 0o600
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)


@contextlib.contextmanager
def locked(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the folder's lock. The lock ends with the process, however the process ends.

    Raises:
        MemoryLocked: another process has held it for `seconds`; the message says which.
        MemoryUnwritable: the lock file cannot be made.
    """
    path = folder / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS, _PRIVATE)
        _tighten(descriptor)
    except OSError as error:
        raise MemoryUnwritable(
            f"{path} cannot be written ({error.strerror}); make the folder writable, and try again."
        ) from error
    try:
        _wait(descriptor, folder, seconds)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _tighten(descriptor: int) -> None:
    """Make a lock file private that an older version, or another program, has made readable for others."""
    # The file of another user stays as it is: it holds a process id and a time.
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != _PRIVATE:
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, _PRIVATE)


def _wait(descriptor: int, folder: Path, seconds: float) -> None:
    end, pause = time.monotonic() + seconds, _PAUSE
    while not _taken(descriptor):
        if time.monotonic() >= end:
            raise MemoryLocked(
                f"The memory in {folder} is being written by {_holder(descriptor)}; it did not finish within "
                f"{seconds:g} seconds. Try again, or end that process if it hangs."
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _taken(descriptor: int) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it, see the error below
    except ImportError:
        raise MemoryLocked("This system has no file locks that curated memory can use; use a POSIX system.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int) -> None:
    """Write the id of this process into the lock file. Only for people: a full disk must not prevent reading."""
    note = json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")})
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, note.ljust(80).encode("ascii"), 0)


def _holder(descriptor: int) -> str:
    try:
        note = json.loads(os.pread(descriptor, _LONGEST_NOTE, 0))
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']).isoformat()}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
