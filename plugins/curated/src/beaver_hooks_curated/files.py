"""Reads and writes the files of curated memory: whole or not at all, private, never through a symbolic link.

A write is a temporary file in the same folder, synced, put in place, and the folder synced. A writer holds
the folder's lock, so a temporary file that is found under the lock is a stray one.
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

from beaver_hooks_curated.atomic_swap import put
from beaver_hooks_curated.errors import MemoryUnconfirmed, MemoryUnreadable, MemoryUnwritable
from beaver_hooks_curated.folders import explained
from beaver_hostspecs import ConfigurationError, FileTrust
from beaver_toolkit.files import sync

PRIVATE = 0o600
LARGEST = 4 * 1024 * 1024
"""Bytes beyond which a file is refused as a memory file: more than the largest limit can need."""
LARGEST_OF_OURS = 8 * 1024 * 1024
"""Bytes that a file of the plugin's own, for example the history, may have; it is kept far below."""
SETTLE = 0.2
"""Seconds to wait for an editor that has emptied the file and is about to fill it."""
DISPLACED, REFUSED, MOVED = "displaced", "refused", "moved"
"""Why a text is kept aside: it was replaced and cannot be read, it was refused, or it was merged."""
# Not on Windows, where they are 0 and change nothing.
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)


@attrs.frozen(kw_only=True)
class Found:
    """The content of a file.

    Attributes:
        text: its text; empty where it is missing, too.
        written: when it was written.
        there: whether there is a file.
        aside: the path it was moved to, if it was replaced and cannot be read as a memory file.
    """

    text: str = attrs.field(default="", repr=False)
    written: float = 0.0
    there: bool = False
    aside: Path | None = None


def read(path: Path, trust: FileTrust, *, name: Path | None = None, largest: int = LARGEST) -> Found:
    """Return the content of `path`, without a byte order mark.

    Args:
        path: the file.
        trust: says whether it may be believed.
        name: the file whose trust applies, if it is another one.
        largest: the bytes that it may have.

    Raises:
        MemoryUnconfirmed: it may not be believed.
        MemoryUnreadable: it exists and is no regular file, too large, not UTF-8, holds NUL or cannot be read.
    """
    content, status = _content(path, largest)
    if status is None:
        return Found()
    _check(name or path, content, trust)
    return Found(text=_decoded(path, content), written=status.st_mtime, there=True)


def read_settled(path: Path, trust: FileTrust, *, name: Path | None = None) -> Found:
    """Return the content of `path`; wait a moment for one that is empty or missing.

    Editors empty a file and then fill it, or move it away and write a new one.
    """
    end = time.monotonic() + SETTLE
    while not (found := read(path, trust, name=name)).text and time.monotonic() < end:
        if found.there and time.time() - found.written > SETTLE:
            break
        time.sleep(SETTLE / 20)
    return found


def replace(path: Path, text: str, trust: FileTrust) -> Found | None:
    """Put `text` in place of a memory file, durably; return the replaced content, `None` where that is unknown.

    Replaced content that cannot be read or believed is kept beside the file: it belongs to the user.

    Raises:
        MemoryUnwritable: it could not be done; the file is unchanged.
    """
    content = encoded(path, text, LARGEST)
    with _temporary(path, content) as temporary:
        _record(path, content, trust)
        exchanged = put(temporary, path)
        sync(path.parent)
        return _replaced(temporary, path, trust) if exchanged else None


def overwrite(path: Path, text: str, trust: FileTrust) -> None:
    """Put `text` in place of a file of the plugin's own, durably.

    Raises:
        MemoryUnwritable: it could not be done; the file is unchanged.
    """
    content = encoded(path, text, LARGEST_OF_OURS)
    with _temporary(path, content) as temporary:
        _record(path, content, trust)
        temporary.replace(path)
        sync(path.parent)


def encoded(path: Path, text: str, largest: int) -> bytes:
    """Return the bytes of a file that reads as `text`.

    Raises:
        MemoryUnwritable: reading would refuse them.
    """
    try:
        # A first character U+FEFF would be read as a byte order mark.
        content = text.encode("utf-8-sig" if text.startswith("\ufeff") else "utf-8")
    except UnicodeEncodeError:
        raise MemoryUnwritable(_refusal(path, "a character that is none (a lone surrogate)")) from None
    if "\0" in text:
        raise MemoryUnwritable(_refusal(path, "zero bytes"))
    if len(content) > largest:
        raise MemoryUnwritable(_refusal(path, f"{len(content):,} bytes, of which {largest:,} can be read"))
    return content


def read_lines(path: Path, trust: FileTrust) -> list[str]:
    """Return the lines of a file of the plugin's own; bytes that are not UTF-8 become replacement characters.

    Raises:
        MemoryUnconfirmed: it may not be believed.
        MemoryUnreadable: it exists and cannot be read.
    """
    return _believed(path, trust).decode("utf-8", "replace").split("\n")


def mark(path: Path) -> tuple[int, int, int]:
    """Return a mark that changes when the file grows or another file takes its place.

    Raises:
        MemoryUnreadable: the file cannot be examined.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return (0, 0, 0)
    except OSError as error:
        raise MemoryUnreadable(_advice(path, _opening(error))) from error
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def append(path: Path, lines: list[str], trust: FileTrust | None = None) -> None:
    """Append lines to `path`, durably: all of them or, as far as the disk permits, none.

    Args:
        path: the file.
        lines: the lines to append.
        trust: says whether the file may be believed; `None` for one that is never read again.

    Raises:
        MemoryUnconfirmed: the present content may not be believed.
        MemoryUnwritable: it could not be done.
    """
    content = encoded(path, "".join(f"{line}\n" for line in lines), LARGEST_OF_OURS)
    if trust is not None and trust.doubts(path):
        before = _believed(path, trust)
        _record(path, _joined(before, content), trust)
    with explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _NO_LINKS | _NO_WAIT, PRIVATE)
        try:
            end = os.fstat(descriptor).st_size
            last = os.pread(descriptor, 1, end - 1) if end else b""
            _write_all(descriptor, _joined(last, content)[len(last) :], end)
        finally:
            os.close(descriptor)


def aside_path(path: Path, why: str) -> Path:
    """Return a new name beside a memory file, for a text that is kept aside."""
    return path.with_name(f"{path.stem}.{why}-{secrets.token_hex(4)}{path.suffix}")


def remove(path: Path) -> None:
    """Remove a file, durably, if it exists.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    with explained(path):
        path.unlink(missing_ok=True)
        sync(path.parent)


def rename(path: Path, new: Path) -> None:
    """Give a file another name in its folder, durably.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    with explained(path):
        path.rename(new)
        sync(path.parent)


def _joined(before: bytes, content: bytes) -> bytes:
    """Return `before` and the lines after it. A line that was cut off by a crash stays by itself."""
    torn = before and not before.endswith(b"\n")
    return before + (b"\n" if torn else b"") + content


def _believed(path: Path, trust: FileTrust) -> bytes:
    content, _ = _content(path, LARGEST_OF_OURS)
    _check(path, content, trust)
    return content


def _check(path: Path, content: bytes, trust: FileTrust) -> None:
    if content and not trust.believes(path, content):
        raise MemoryUnconfirmed(path)


def _record(path: Path, content: bytes, trust: FileTrust) -> None:
    try:
        trust.record(path, content)
    except ConfigurationError as error:
        raise MemoryUnwritable(f"{path} cannot be written: {error.problem}") from error


def _content(path: Path, largest: int) -> tuple[bytes, os.stat_result | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINKS | _NO_WAIT)
    except FileNotFoundError:
        return b"", None
    except OSError as error:
        raise MemoryUnreadable(_advice(path, _opening(error))) from error
    status = os.fstat(descriptor)
    try:
        # Checked before reading: a pipe would wait, and a folder cannot be opened as a file.
        if not stat.S_ISREG(status.st_mode):
            raise MemoryUnreadable(_advice(path, "is not a memory file"))
        if status.st_size > largest:
            raise MemoryUnreadable(_advice(path, f"is too large ({status.st_size:,} of {largest:,} bytes)"))
        return _whole(descriptor), status
    except OSError as error:
        raise MemoryUnreadable(_advice(path, f"cannot be read ({error.strerror})")) from error
    finally:
        os.close(descriptor)


def _whole(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, LARGEST_OF_OURS):
        parts.append(part)
    return b"".join(parts)


def write_new(path: Path, content: bytes) -> None:
    """Write a new file, private and synced; raise `OSError` where that fails."""
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


def _replaced(temporary: Path, path: Path, trust: FileTrust) -> Found:
    """Return the replaced content; a file that cannot be read is kept under a name of its own."""
    try:
        return read_settled(temporary, trust, name=path)
    except MemoryUnreadable:
        aside = aside_path(path, DISPLACED)
        temporary.rename(aside)
        sync(path.parent)
        return Found(there=True, aside=aside)


@contextlib.contextmanager
def _temporary(path: Path, content: bytes) -> Iterator[Path]:
    """Yield a synced file beside `path`, and remove it at the end if it is still there."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with explained(path):
        try:
            write_new(temporary, content)
            yield temporary
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _decoded(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MemoryUnreadable(
            _advice(path, f"is not UTF-8 (line {line})", "open it in an editor and save it as UTF-8")
        ) from None
    # A crash before the data reached the disk leaves zeros.
    if "\0" in text:
        raise MemoryUnreadable(_advice(path, "holds zero bytes"))
    return text


def _opening(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return "is a symbolic link"
    return f"cannot be opened ({error.strerror})"


def _refusal(path: Path, problem: str) -> str:
    return f"{path} cannot be written: the text holds {problem}. Remove it, and try again; nothing was written."


def _advice(path: Path, problem: str, remedy: str = "fix it by hand or restore it from a backup") -> str:
    return (
        f"The memory file {path} {problem}. It was not changed: {remedy}, or move it away to start with an empty one."
    )
