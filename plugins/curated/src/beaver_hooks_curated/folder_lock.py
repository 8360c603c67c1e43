"""Gives a folder to one writer at a time: a lock with a deadline, whose file names the holder."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from beaver_hooks_curated.errors import MemoryLocked, MemoryUnwritable
from beaver_toolkit import locks

LOCK_FILE = ".lock"
_LONGEST_NOTE = 500


@contextlib.contextmanager
def locked(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the folder's lock. It ends with the process, however the process ends.

    Raises:
        MemoryLocked: another process has held it for `seconds`; the message names that process.
        MemoryUnwritable: the lock file cannot be made.
    """
    path = folder / LOCK_FILE
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.locked(path, seconds=seconds, on_acquired=_sign))
        except locks.LockTimeout:
            raise MemoryLocked(
                f"The memory in {folder} is being written by {_holder(path)}; it did not finish within "
                f"{seconds:g} seconds. Try again, or end that process if it hangs."
            ) from None
        except locks.LocksMissing:
            raise MemoryLocked(
                f"The file system of {folder} has no file locks; keep curated memory on another one."
            ) from None
        except OSError as error:
            raise MemoryUnwritable(
                f"{path} cannot be written ({error.strerror}); make the folder writable, and try again."
            ) from error
        yield


def _sign(descriptor: int) -> None:
    """Write the id of this process and the time into the lock file, for people; make an older lock file private."""
    note = json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")})
    # A full disk must not keep a user from reading, and the lock file of another user stays as it is.
    with contextlib.suppress(OSError):
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != locks.PRIVATE:
            os.fchmod(descriptor, locks.PRIVATE)
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, note.ljust(80).encode("ascii"), 0)


def _holder(path: Path) -> str:
    try:
        note = json.loads(path.read_bytes()[:_LONGEST_NOTE])
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']).isoformat()}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
