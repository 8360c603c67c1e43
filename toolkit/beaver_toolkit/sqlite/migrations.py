"""Brings a database to the schema of this version: forward only, in one transaction."""

import time
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from beaver_toolkit.sqlite.connections import Immediate
from beaver_toolkit.sqlite.errors import DatabaseError

if TYPE_CHECKING:
    import apsw

_HISTORY = """
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT
"""


def read_migrations(package: str) -> tuple[str, ...]:
    """Return the scripts in the folder `migrations` of a package, oldest first.

    The version of a database is the number of scripts that were applied to it.
    """
    scripts = (each for each in (files(package) / "migrations").iterdir() if each.name.endswith(".sql"))
    return tuple(script.read_text("utf-8") for script in sorted(scripts, key=lambda each: each.name))


def version_of(connection: "apsw.Connection") -> int:
    """Return the version of a database, 0 for an empty one."""
    if not connection.table_exists("main", "schema_version"):
        return 0
    return int(connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").get)


def migrate(connection: "apsw.Connection", scripts: Sequence[str]) -> None:
    """Apply the scripts that a database lacks, in one transaction; keep the time of each in the table `schema_version`.

    Args:
        connection: a connection that may write.
        scripts: all scripts, oldest first.

    Raises:
        DatabaseError: the category is `newer`: a newer version of the program wrote the database.
    """
    if version_of(connection) == len(scripts):
        return
    with Immediate(connection):
        # Read again under the lock: another process may have been faster.
        done = version_of(connection)
        if done > len(scripts):
            raise DatabaseError("newer")
        connection.execute(_HISTORY)
        for script in scripts[done:]:
            connection.execute(script)
        now, versions = time.time_ns() // 1000, range(done + 1, len(scripts) + 1)
        connection.executemany("INSERT INTO schema_version VALUES (?, ?)", [(version, now) for version in versions])
