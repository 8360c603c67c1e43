"""Writes small files whole or not at all, private and durable, and opens files without waiting for a pipe."""

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from beaver_toolkit.locks import PRIVATE, locked

STRAY_AFTER = 60.0
"""Seconds after which the process that wrote a temporary file counts as gone."""
HAS_DRIVE_CACHE = sys.platform == "darwin"
"""Whether `fsync` leaves content in the cache of the drive: on macOS another call empties it."""

_FULL_SYNC = 51
"""That call, `F_FULLFSYNC`: the module `fcntl` has its name on macOS only."""

_WORKING_FOLDER, _EXCHANGE = -100, 2
"""The arguments `AT_FDCWD` and `RENAME_EXCHANGE` of `renameat2`."""


# Windows has none of the first two, nor such links and pipes; it has the last one alone.
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
_BYTES: int = getattr(os, "O_BINARY", 0)


class NotRegular(OSError):
    """A folder, a pipe or a device stands where a file should be."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file")


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """Open a regular file for reading; opening a pipe would wait for a writer.

    Args:
        path: the file.
        follow_links: whether `path` may be a symbolic link.

    Raises:
        NotRegular: it is no regular file.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_WAIT | _BYTES | (0 if follow_links else _NO_LINKS))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular
    return os.fdopen(descriptor, "rb")


def create_once(path: Path, content: bytes) -> bool:
    """Make `path` (0600) with `content` unless it exists; return whether this call made it.

    A reader sees the whole file or none: it is written and synced under a temporary name and then linked, which fails
    where the name is taken. Without hard links it is moved there under an exclusive lock (`beaver_toolkit.locks`).

    Raises:
        LocksMissing: the file system has neither hard links nor locks.
        OSError: it cannot be written.
    """
    with _written(path, content) as temporary:
        return publish(temporary, path)


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


@contextlib.contextmanager
def replaced(path: Path, content: bytes) -> Iterator[Path | None]:
    """Replace `path` like `replace`, and yield the path of the replaced file, which is removed after the block.

    So text is not lost that an editor, which takes no lock, saved a moment before. Yields `None` where there was no
    file, or where the system cannot exchange two names in one step.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    with _written(path, content) as temporary:
        known = exchange(temporary, path)
        if not known:
            temporary.replace(path)
        sync(path.parent)
        yield temporary if known else None


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files in one step; return whether it was done. Linux can, on most file systems."""
    renameat2 = _renameat2()
    arguments = (_WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other), _EXCHANGE)
    return renameat2 is not None and renameat2(*arguments) == 0


def publish(temporary: Path, path: Path) -> bool:
    """Give a synced temporary file the name `path` in its folder unless that exists; return whether this call did.

    The temporary name may stay, for the caller to remove.

    Raises:
        LocksMissing: the file system has neither hard links nor locks.
        OSError: it cannot be done.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:
        return _publish_locked(temporary, path)
    sync(path.parent)
    return True


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


def _publish_locked(temporary: Path, path: Path) -> bool:
    with locked(path.with_name(f".{path.name}.lock")):
        if os.path.lexists(path):
            return False
        temporary.replace(path)
        sync(path.parent)
        return True


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Return the function of the C library, which Python does not offer."""
    # Imported late, because it takes some milliseconds.
    import ctypes  # noqa: PLC0415

    try:
        function = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function
