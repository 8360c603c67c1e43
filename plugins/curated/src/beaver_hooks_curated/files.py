"""Reads and writes the files of curated memory: whole or not at all, private, never through a symbolic link.

A write is a temporary file in the same folder, synced, put in place, and the folder synced. Whoever writes holds
the folder's lock, so a temporary file that somebody finds under the lock is a stray one.
"""

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from beaver_hooks_curated.errors import MemoryUnreadable, MemoryUnwritable
from beaver_hooks_curated.exchanging import put

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
LARGEST = 8 * 1024 * 1024
"""Bytes beyond which a memory file is not one."""
SETTLE = 0.2
"""Seconds for which an empty file may be one that somebody is just about to fill."""
# Not on Windows, where they are 0 and change nothing.
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)


@attrs.frozen(kw_only=True)
class Found:
    """What is in a file: its text, and when it was written; `text` is empty and `there` false where it is missing."""

    text: str = attrs.field(default="", repr=False)
    written: float = 0.0
    there: bool = False


def read(path: Path) -> Found:
    """Return what is in `path`. A byte order mark is taken off.

    Raises:
        MemoryUnreadable: it is there and is no regular file, too large, not UTF-8, holds NUL or cannot be read.
    """
    content, status = _content(path)
    if status is None:
        return Found()
    return Found(text=_decoded(path, content), written=status.st_mtime, there=True)


def read_settled(path: Path) -> Found:
    """Return what is in `path`; one that is empty or missing gets a moment to be filled.

    Editors empty a file and then fill it, or move it away and write a new one.
    """
    end = time.monotonic() + SETTLE
    while not (found := read(path)).text and time.monotonic() < end:
        if found.there and time.time() - found.written > SETTLE:
            break
        time.sleep(SETTLE / 20)
    return found


def replace(path: Path, text: str) -> Found | None:
    """Put `text` in place of `path`, durably, and return what it replaced; `None` where that cannot be told.

    Raises:
        MemoryUnwritable: it could not be done; what was there is there still.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with _explained(path):
        try:
            _write(temporary, text.encode("utf-8"))
            exchanged = put(temporary, path)
            sync_folder(path.parent)
            return _replaced(temporary) if exchanged else None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of ours; bytes that are no text become replacement characters.

    Raises:
        MemoryUnreadable: it is there and cannot be read.
    """
    return _content(path)[0].decode("utf-8", "replace").split("\n")


def append(path: Path, lines: list[str]) -> None:
    """Append lines to `path`, durably: all of them or, as far as the disk lets us, none.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    content = "".join(f"{line}\n" for line in lines).encode("utf-8")
    with _explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINKS | _NO_WAIT, PRIVATE)
        try:
            end = os.fstat(descriptor).st_size
            # A line that was cut off by a crash stays by itself.
            torn = end and os.pread(descriptor, 1, end - 1) != b"\n"
            _write_all(descriptor, b"\n" + content if torn else content, end)
        finally:
            os.close(descriptor)


def sweep(folder: Path) -> int:
    """Remove the temporary files that killed processes left in `folder`; return how many. Needs the lock."""
    strays = list(folder.glob(".*.tmp"))
    for stray in strays:
        with _explained(stray):
            stray.unlink(missing_ok=True)
    return len(strays)


def remove(path: Path) -> None:
    """Remove a file, durably; one that is not there is removed already.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    with _explained(path):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a private folder unless it exists.

    Raises:
        MemoryUnwritable: it cannot be made, or is a symbolic link or a file.
    """
    with _explained(folder):
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    if folder.is_symlink():
        raise MemoryUnwritable(f"The folder {folder} is a symbolic link; name its target instead.")


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable, where the system can."""
    # Windows cannot open a folder; there the rename itself is all there is.
    with contextlib.suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _content(path: Path) -> tuple[bytes, os.stat_result | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINKS | _NO_WAIT)
    except FileNotFoundError:
        return b"", None
    except OSError as error:
        raise MemoryUnreadable(_advice(path, _opening(error))) from error
    status = os.fstat(descriptor)
    try:
        # Asked before anything is read: a pipe would wait, and a folder cannot be opened as a file.
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise MemoryUnreadable(_advice(path, "is no memory file"))
        return _whole(descriptor), status
    except OSError as error:
        raise MemoryUnreadable(_advice(path, f"cannot be read ({error.strerror})")) from error
    finally:
        os.close(descriptor)


def _whole(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, LARGEST):
        parts.append(part)
    return b"".join(parts)


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _write_all(descriptor: int, content: bytes, end: int) -> None:
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def _replaced(path: Path) -> Found | None:
    """Return what was exchanged, or `None` where it cannot be read: then it was no text of ours."""
    try:
        return read_settled(path)
    except MemoryUnreadable:
        return None


def _decoded(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MemoryUnreadable(_advice(path, "is not UTF-8")) from None
    # What a disk leaves of a file that was never written is zeros.
    if "\0" in text:
        raise MemoryUnreadable(_advice(path, "holds zero bytes"))
    return text


def _opening(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "is a symbolic link"
    return f"cannot be opened ({error.strerror})"


def _advice(path: Path, problem: str) -> str:
    return (
        f"The memory file {path} {problem}. It was left as it is: mend it by hand or restore it from a backup, "
        "or move it away to start anew."
    )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MemoryUnwritable(
            f"{path} cannot be written ({error.strerror}); make room or make it writable, and try again. "
            "What was there before is there still."
        ) from error
