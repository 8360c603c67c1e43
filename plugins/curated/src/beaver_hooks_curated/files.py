"""Reads and writes the files of curated memory: whole or not at all, private, never through a symbolic link.

A writer holds the folder's lock, so a temporary file that is found under the lock is a stray one.
"""

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import attrs

from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.errors import MemoryUnconfirmed, MemoryUnreadable, MemoryUnwritable
from beaver_hooks_curated.folders import explained, make_folder
from beaver_hostspecs import ConfigurationError, FileTrust
from beaver_toolkit import files as toolkit
from beaver_toolkit.files import create_once

LARGEST = 4 * 1024 * 1024
"""Bytes beyond which a file is refused as a memory file: more than the largest limit can need."""
LARGEST_OF_OURS = 128 * 1024 * 1024
"""Bytes that a file of the plugin's own may have. A history holds at least one change, of two of the largest texts."""
SETTLE = 0.2
"""Seconds to wait for an editor that has emptied the file and is about to fill it."""
_PRIVATE = 0o600
# Not on Windows, where they are 0 and change nothing.
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)

MOST = 10
"""Refused texts of each target; the oldest are deleted."""
REFUSED = "refused"


@attrs.frozen(kw_only=True)
class FileContent:
    """The content of a file.

    Attributes:
        text: its text; empty where it is missing, too.
        written: when it was written.
        there: whether there is a file.
    """

    text: str = attrs.field(default="", repr=False)
    written: float = 0.0
    there: bool = False


def read(path: Path, trust: FileTrust, *, at: Path | None = None, largest: int = LARGEST) -> FileContent:
    """Return the content of `path`, without a byte order mark.

    Args:
        path: the file that trust and errors are about.
        trust: says whether it may be believed.
        at: its present path, if it was moved.
        largest: the bytes that it may have.

    Raises:
        MemoryUnconfirmed: it may not be believed.
        MemoryUnreadable: it exists and is no regular file, too large, not UTF-8, holds NUL or cannot be read.
    """
    content, status = _content(path, trust, at or path, largest)
    if status is None:
        return FileContent()
    return FileContent(text=_decoded(path, content), written=status.st_mtime, there=True)


def read_settled(path: Path, trust: FileTrust, *, at: Path | None = None) -> FileContent:
    """Return the content of `path`; wait a moment for one that is empty or missing.

    Editors empty a file and then fill it, or move it away and write a new one.
    """
    end = time.monotonic() + SETTLE
    while not (found := read(path, trust, at=at)).text and time.monotonic() < end:
        if found.there and time.time() - found.written > SETTLE:
            break
        time.sleep(SETTLE / 20)
    return found


def read_lines(path: Path, trust: FileTrust) -> list[str]:
    """Return the lines of a file of the plugin's own; bytes that are not UTF-8 become replacement characters.

    Raises:
        MemoryUnconfirmed: it may not be believed.
        MemoryUnreadable: it exists and cannot be read.
    """
    content, _ = _content(path, trust, path, LARGEST_OF_OURS)
    return content.decode("utf-8", "replace").split("\n")


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


def replace(path: Path, text: str, trust: FileTrust) -> FileContent | None:
    """Put `text` in place of a memory file, durably; return the replaced content, `None` where that is unknown.

    Raises:
        MemoryUnreadable: the user saved something during the write that cannot be read or believed; it is in place.
        MemoryUnwritable: it could not be done; the file is unchanged.
    """
    content = encoded(path, text, LARGEST)
    _record(path, content, trust)
    with explained(path), toolkit.replaced(path, content) as old:
        if old is None:
            return None
        try:
            return read_settled(path, trust, at=old)
        except MemoryUnreadable:
            _put_back(old, path, content)
            raise


def overwrite(path: Path, text: str, trust: FileTrust) -> None:
    """Put `text` in place of a file of the plugin's own, durably.

    Raises:
        MemoryUnwritable: it could not be done; the file is unchanged.
    """
    content = encoded(path, text, LARGEST_OF_OURS)
    _record(path, content, trust)
    with explained(path):
        toolkit.replace(path, content)


def append(path: Path, lines: list[str], trust: FileTrust) -> None:
    """Append lines to `path`, durably: all of them or, as far as the disk permits, none.

    Raises:
        MemoryUnconfirmed: the present content may not be believed.
        MemoryUnwritable: it could not be done.
    """
    content = encoded(path, "".join(f"{line}\n" for line in lines), LARGEST_OF_OURS)
    before, _ = _content(path, trust, path, LARGEST_OF_OURS) if trust.doubts(path) else (b"", None)
    with explained(path), open(path, "a+b", buffering=0, opener=_private) as file:
        end = file.seek(0, os.SEEK_END)
        # A line that was cut off by a crash stays by itself.
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            content = b"\n" + content
        _record(path, before + content, trust)
        try:
            _write(file.fileno(), content)
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise


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


def beside(path: Path, why: str) -> Path:
    """Return a new name beside a memory file, for a text that is kept aside."""
    return path.with_name(f"{path.stem}.{why}-{secrets.token_hex(4)}{path.suffix}")


def remove(path: Path) -> None:
    """Remove a file, durably, if it exists.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    with explained(path):
        path.unlink(missing_ok=True)
        toolkit.sync(path.parent)


def _content(path: Path, trust: FileTrust, at: Path, largest: int) -> tuple[bytes, os.stat_result | None]:
    """Return the bytes of a file, and what the system knows of it: `None` for a missing one."""
    try:
        descriptor = os.open(at, os.O_RDONLY | _NO_LINKS | _NO_WAIT)
    except FileNotFoundError:
        return b"", None
    except OSError as error:
        raise MemoryUnreadable(_advice(path, _opening(error))) from error
    try:
        status = os.fstat(descriptor)
        # Checked before reading: a pipe would wait, and a folder cannot be opened as a file.
        if not stat.S_ISREG(status.st_mode):
            raise MemoryUnreadable(_advice(path, "is not a memory file"))
        if status.st_size > largest:
            raise MemoryUnreadable(_advice(path, f"is too large ({status.st_size:,} of {largest:,} bytes)"))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
    except OSError as error:
        raise MemoryUnreadable(_advice(path, f"cannot be read ({error.strerror})")) from error
    finally:
        os.close(descriptor)
    if content and not trust.believes(path, content):
        raise MemoryUnconfirmed(path)
    return content, status


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | _NO_LINKS | _NO_WAIT, _PRIVATE)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
    os.fsync(descriptor)


def _put_back(old: Path, path: Path, content: bytes) -> None:
    """Put a replaced file in place again, unless the user has saved another one since."""
    if not toolkit.exchange(old, path):
        # An editor has moved the new file away.
        old.replace(path)
    elif old.read_bytes() != content:
        toolkit.exchange(old, path)
    toolkit.sync(path.parent)


def _record(path: Path, content: bytes, trust: FileTrust) -> None:
    try:
        trust.record(path, content)
    except ConfigurationError as error:
        raise MemoryUnwritable(f"{path} cannot be written: {error.problem}") from error


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


def keep(folder: Path, target: Target, content: bytes) -> Path:
    """Keep a text of the user that was refused; return its path.

    Raises:
        CuratedError: the folder cannot be made.
        OSError: the file cannot be written.
    """
    make_folder(folder)
    path = beside(folder / target.file_name, REFUSED)
    create_once(path, content)
    for old in sorted(_kept(folder, target), key=lambda each: each.lstat().st_mtime_ns)[:-MOST]:
        # The next call tries again: the new text matters more than the old file.
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)
    return path


def forget(folder: Path, targets: Iterable[Target]) -> None:
    """Delete all texts of the targets that are kept.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    for target in targets:
        for path in _kept(folder, target):
            remove(path)


def _kept(folder: Path, target: Target) -> list[Path]:
    return list(folder.glob(f"{Path(target.file_name).stem}.{REFUSED}-*"))
