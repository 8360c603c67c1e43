"""The key of the audit trail: 32 random bytes as hex, in a file outside the database it protects."""

import os
import re
import secrets
import stat
from io import BufferedReader
from pathlib import Path

import attrs
from attrs import field

from beaver_hostspecs import AuditUnavailable
from beaver_toolkit.files import create_once, sweep

KEY_FILE = "audit.key"
_LENGTH = 32
_HEX = re.compile(rb"[0-9a-f]{%d}\n?" % (2 * _LENGTH))
# Not on Windows, where it is 0 and changes nothing.
_NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0)


@attrs.frozen(kw_only=True)
class Key:
    """The key, and how it was found.

    Attributes:
        secret: the key itself.
        tightened: whether other users could read the file until now. The host audits that.
    """

    secret: bytes = field(repr=False)
    tightened: bool = False


def read_key(folder: Path) -> Key | None:
    """Return the key, or `None` without a key file.

    A file that other users may read is tightened to 0600, and the result says so.

    Raises:
        AuditUnavailable: the file cannot be read, cannot be tightened, is a symbolic link or holds no key. It
            is left unchanged, as existing records were made with its former key.
    """
    path = folder / KEY_FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_LINKS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AuditUnavailable(_advice(path, f"cannot be read ({error.strerror})")) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise AuditUnavailable(_advice(path, "is not a regular file"))
    with os.fdopen(descriptor, "rb") as file:
        tightened = _tighten(path, descriptor)
        return Key(secret=_parse(path, file), tightened=tightened)


def make_key(folder: Path) -> Key:
    """Make the key unless another process made it first, and return the key in the file.

    Raises:
        AuditUnavailable: the key can be neither made nor read.
    """
    path = folder / KEY_FILE
    try:
        sweep(path)
        create_once(path, secrets.token_hex(_LENGTH).encode("ascii") + b"\n")
    except OSError as error:
        raise AuditUnavailable(_advice(path, f"cannot be written ({error.strerror})")) from error
    key = read_key(folder)
    if key is None:
        raise AuditUnavailable(_advice(path, "disappeared while it was written"))
    return key


def _tighten(path: Path, descriptor: int) -> bool:
    if not stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077 or os.name == "nt":
        return False
    try:
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise AuditUnavailable(_advice(path, f"may be read by others ({error.strerror})")) from error
    return True


def _parse(path: Path, file: BufferedReader) -> bytes:
    content = file.read(2 * _LENGTH + 2)
    if not _HEX.fullmatch(content):
        raise AuditUnavailable(_advice(path, "holds no key"))
    return bytes.fromhex(content.decode("ascii"))


def _advice(path: Path, problem: str) -> str:
    return (
        f"The audit key {path} {problem}. Restore the file (mode 0600) from a backup, or move it and host.db"
        " away together to start a new audit trail."
    )
