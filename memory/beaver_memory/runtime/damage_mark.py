"""A file beside a database that says that rows of it are damaged, until a check finds it whole."""

import contextlib
from pathlib import Path

from beaver_memory.runtime.profile import DATABASE, Location, SqliteLocation


class DamageMark:
    """The mark of one database. Where no file can be made, the next reader finds the damage anew.

    Args:
        database: the database.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f".{database.name}.damaged")

    @property
    def is_set(self) -> bool:
        """Whether damage was found and not mended."""
        return self._path.exists()

    def set(self) -> None:
        """Set the mark."""
        with contextlib.suppress(OSError):
            self._path.touch(mode=0o600)

    def clear(self) -> None:
        """Remove the mark."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def damage_marks(location: Location) -> tuple[DamageMark, ...]:
    """Return the marks of the databases in files: that of the project, and that of the person."""
    if not isinstance(location, SqliteLocation):
        return ()
    paths = dict.fromkeys((location.database, location.person_folder / DATABASE))
    return tuple(map(DamageMark, paths if location.database_path is None else (location.database,)))
