"""Errors of SQLite and the file system, as one error with a category in one word."""

import contextlib
import errno
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from beaver_toolkit.locks import LocksMissing

if TYPE_CHECKING:
    import apsw

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

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


UNWRITABLE = frozenset({"read_only", "cannot_open", "disk_full"})
"""Categories of errors after which a database may still be readable."""


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


def category_of(error: Exception, connection: "apsw.Connection | None" = None) -> str:
    """Return the category of one of the `faults`.

    Args:
        error: the fault.
        connection: on which it happened, if known: the system tells it more than SQLite does.
    """
    if isinstance(error, driver().Error):
        if _is_full(error, connection):
            return "disk_full"
        # apsw names the error of a VFS or an extension after it was subclassed, so the parents count too.
        names = (each.__name__ for each in type(error).__mro__)
        return next((_CATEGORIES[name] for name in names if name in _CATEGORIES), "failed")
    if isinstance(error, LocksMissing):
        return "no_locks"
    if isinstance(error, PermissionError):
        return "cannot_open"
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return "disk_full"
    return "io_error" if isinstance(error, OSError) else "corrupt"


def _is_full(error: Exception, connection: "apsw.Connection | None") -> bool:
    """Return whether an error of reading or writing comes from a full disk, a quota or a limit of the file size."""
    sqlite = driver()
    if not isinstance(error, sqlite.IOError):
        return False
    # The index of the log cannot grow; SQLite does not say why.
    if getattr(error, "extendedresult", 0) == sqlite.SQLITE_IOERR_SHMSIZE:
        return True
    with contextlib.suppress(sqlite.ConnectionClosedError):
        return connection is not None and connection.system_errno in _NO_ROOM
    return False


@contextlib.contextmanager
def translated(connection: "apsw.Connection | None" = None) -> Iterator[None]:
    """Turn errors of the database or the file system in a block into `DatabaseError`."""
    try:
        yield
    except faults() as error:
        raise DatabaseError(category_of(error, connection)) from error
