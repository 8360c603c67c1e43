"""Errors of SQLite and the file system, as one error with a category in one word."""

import contextlib
from collections.abc import Iterator
from types import ModuleType

from beaver_toolkit.locks import LocksMissing

_CATEGORIES = {
    "BusyError": "locked",
    "LockedError": "locked",
    "FullError": "disk_full",
    "ReadOnlyError": "read_only",
    "PermissionsError": "read_only",
    "CantOpenError": "cannot_open",
    "CorruptError": "corrupt",
    "NotADBError": "corrupt",
    "IOError": "io_error",
    "SQLError": "broken",
    "SchemaChangeError": "broken",
    "ConstraintError": "broken",
}
"""By the name of apsw's class; any other class of apsw is `failed`."""


class DatabaseError(Exception):
    """An operation of the database failed.

    Attributes:
        category: why, in one word that may be shown anywhere.
    """

    def __init__(self, category: str) -> None:
        self.category = category
        super().__init__(category)


def driver() -> ModuleType:
    """Return apsw, imported when the first database is opened."""
    import apsw  # noqa: PLC0415 - importing a host must not load a database engine

    return apsw


def faults() -> tuple[type[Exception], ...]:
    """Return the classes of the errors that have a category."""
    return (driver().Error, OSError, UnicodeDecodeError)


def category_of(error: Exception) -> str:
    """Return the category of one of the `faults`."""
    if isinstance(error, driver().Error):
        # apsw names the error of a VFS or an extension after it was subclassed, so the parents count too.
        names = (each.__name__ for each in type(error).__mro__)
        return next((_CATEGORIES[name] for name in names if name in _CATEGORIES), "failed")
    if isinstance(error, LocksMissing):
        return "no_locks"
    if isinstance(error, PermissionError):
        return "cannot_open"
    return "io_error" if isinstance(error, OSError) else "corrupt"


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the database or the file system in a block into `DatabaseError`."""
    try:
        yield
    except faults() as error:
        raise DatabaseError(category_of(error)) from error
