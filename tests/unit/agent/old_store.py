"""The session store of an older version, which kept by each session whether its memory was off."""

from datetime import UTC, datetime
from pathlib import Path

import apsw

from beaver_hooks.agent.sessions.database import DATABASE, PACKAGE
from beaver_toolkit.sqlite.migrations import read_migrations

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
SAID = (("user", "of the older version"), ("assistant", "yes"))


def make_old_store(folder: Path, *sessions: tuple[str, str | None, bool]) -> None:
    """Make the database with the schema and the version that it had; of each session id, user, and whether it is off."""
    folder.mkdir(mode=0o700, parents=True)
    connection = apsw.Connection(str(folder / DATABASE))
    connection.pragma("journal_mode", "WAL")
    connection.execute(read_migrations(PACKAGE)[0])
    connection.pragma("user_version", 1)
    when = WHEN.isoformat(timespec="microseconds")
    for session, user, paused in sessions:
        connection.execute(
            "INSERT INTO sessions (id, user, opening, paused, created, updated, messages) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, user, b"of the older version", int(paused), when, when, len(SAID)),
        )
        number = connection.last_insert_rowid()
        for role, text in SAID:
            connection.execute(
                "INSERT INTO messages (session, role, text, at) VALUES (?, ?, ?, ?)",
                (number, role, text.encode(), when),
            )
    connection.close()
    (folder / DATABASE).chmod(0o600)
