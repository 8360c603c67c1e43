"""The private folder of curated memory: made, locked for one writer at a time, and swept of temporary files."""

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from beaver_hooks_curated.errors import MemoryLocked, MemoryUnwritable
from beaver_toolkit import locks
from beaver_toolkit.files import sync

LOCK_FILE = ".lock"
_PRIVATE = 0o700
_LONGEST_NOTE = 500


def make_folder(folder: Path) -> None:
    """Make a private folder unless it exists.

    Raises:
        MemoryUnwritable: it cannot be made, or is a symbolic link or a file.
    """
    if folder.is_dir() and not folder.is_symlink():
        return
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    with explained(folder):
        # One by one: with `parents=True` the mode applies to the last one only.
        for each in reversed(missing):
            each.mkdir(mode=_PRIVATE, exist_ok=True)
            sync(each.parent)
        folder.mkdir(exist_ok=True)
    if folder.is_symlink():
        raise MemoryUnwritable(f"The folder {folder} is a symbolic link; name its target instead.")


def sweep(folder: Path) -> int:
    """Remove the temporary files that killed processes left in `folder`; return how many. Needs the lock."""
    strays = [path for path in folder.glob(".*.tmp") if path.is_file() and not path.is_symlink()]
    for stray in strays:
        with explained(stray):
            stray.unlink(missing_ok=True)
    return len(strays)


@contextlib.contextmanager
def locked(folder: Path, seconds: float) -> Iterator[None]:
    """Hold the folder's lock, whose file names the holder. It ends with the process, however the process ends.

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


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `MemoryUnwritable` that names the path."""
    try:
        yield
    except OSError as error:
        raise MemoryUnwritable(
            f"{path} cannot be written ({error.strerror}); make room or make it writable, and try again. The old"
            " content is unchanged."
        ) from error


def _sign(descriptor: int) -> None:
    """Write the id of this process and the time into the lock file, for people; make it private."""
    note = json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")})
    # A full disk must not keep a user from reading, and the lock file of another user stays as it is.
    with contextlib.suppress(OSError):
        os.fchmod(descriptor, locks.PRIVATE)
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, note.ljust(80).encode("ascii"), 0)


def _holder(path: Path) -> str:
    try:
        note = json.loads(path.read_bytes()[:_LONGEST_NOTE])
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']).isoformat()}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
