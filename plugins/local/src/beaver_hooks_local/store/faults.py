"""What SQLite and the file system raise, in one word each."""

import apsw

FAULTS = (apsw.Error, OSError, UnicodeDecodeError)

_CATEGORIES = (
    ((apsw.BusyError, apsw.LockedError), "locked"),
    ((apsw.FullError,), "disk_full"),
    ((apsw.ReadOnlyError, apsw.PermissionsError), "read_only"),
    ((apsw.CantOpenError,), "cannot_open"),
    ((apsw.CorruptError, apsw.NotADBError), "corrupt"),
    ((apsw.IOError,), "io_error"),
    ((apsw.SQLError, apsw.SchemaChangeError, apsw.ConstraintError), "broken"),
    ((apsw.Error,), "failed"),
    ((PermissionError,), "cannot_open"),
    ((OSError,), "io_error"),
    ((UnicodeDecodeError,), "corrupt"),
)


def category_of(error: Exception) -> str:
    """Return the category of one of the `FAULTS`; see `StoreError`."""
    return next((category for kinds, category in _CATEGORIES if isinstance(error, kinds)), "failed")
