"""Finds, checks and loads the extension sqlite-vec, and reports its faults."""

import contextlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import apsw

from beaver_memory.errors import EngineError

OLDEST = (0, 1, 7)
"""Versions before this one leave deleted rows in the file."""


class VecError(EngineError):
    """The extension cannot be used.

    Attributes:
        category: why, in one word: `not_installed`, `not_loadable`, `too_old` or `failed`.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(f"sqlite-vec cannot be used ({category}); install beaver-hooks-local[sqlite-vec].")


def installed() -> str:
    """Return the path of the extension.

    Raises:
        VecError: the package is not installed, or its library differs from the installed one.
    """
    try:
        path = str(import_module("sqlite_vec").loadable_path())
    except (ImportError, OSError, AttributeError) as error:
        raise VecError("not_installed") from error
    if not _whole(Path(path)):
        raise VecError("not_loadable")
    return path


def _whole(path: Path) -> bool:
    """Return whether a library is as it was installed: loading a truncated one ends the whole process."""
    try:
        files = distribution("sqlite-vec").files or ()
    except PackageNotFoundError:
        return True
    for file in files:
        # The path has no suffix: the system adds its own.
        if file.stem == path.name and file.hash is not None and file.hash.mode == "sha256":
            return _hash(Path(str(file.locate()))) == file.hash.value
    return True


def _hash(path: Path) -> str:
    """Return a file's hash in the form of a package's list of files; an empty text if it cannot be read."""
    try:
        return urlsafe_b64encode(sha256(path.read_bytes()).digest()).decode().rstrip("=")
    except OSError:
        return ""


def ensure(connection: apsw.Connection, library: Callable[[], str] = installed) -> None:
    """Load the extension into a connection, in a version that erases deleted rows.

    Raises:
        VecError: the extension cannot be used.
    """
    version = _version(connection)
    if version is None:
        _load(connection, library())
        version = _version(connection)
    if version is None:
        raise VecError("not_loadable")
    if version < OLDEST:
        raise VecError("too_old")


@contextlib.contextmanager
def vec_faults() -> Iterator[None]:
    """Raise faults of the extension as faults of the extension, and not of the store."""
    try:
        yield
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError, apsw.NoMemError) as error:
        raise VecError("failed") from error


def _version(connection: apsw.Connection) -> tuple[int, ...] | None:
    try:
        said = str(connection.execute("SELECT vec_version()").get)
    except apsw.SQLError:
        return None
    numbers = said.removeprefix("v").partition("-")[0].split(".")
    return tuple(int(each) for each in numbers if each.isdecimal())


def _load(connection: apsw.Connection, path: str) -> None:
    connection.enable_load_extension(enable=True)
    try:
        connection.load_extension(path)
    except apsw.ExtensionLoadingError as error:
        raise VecError("not_loadable") from error
    finally:
        connection.enable_load_extension(enable=False)
