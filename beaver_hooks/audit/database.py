"""The host's database: SQL and nothing else.

One SQLite file in WAL mode. A commit is durable when it returns (`synchronous=FULL`), and every write
transaction takes the write lock at its beginning, so that processes which append at the same time queue up
instead of failing.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beaver_hooks.audit.chain import GENESIS, ChainedEvent, Fields, Head
from beaver_hooks.audit.connection import (
    DatabaseError,
    connect,
    faults,
    immediate,
    prepare_reading,
    prepare_writing,
    sqlite,
)
from beaver_toolkit.files import create_once, sweep

if TYPE_CHECKING:
    import apsw

DATABASE = "host.db"
RECEIPTS_KEPT = 10_000

# As bytes: what somebody wrote past us need not be text, and must not keep verification from naming it.
_RECORDS = """
SELECT seq, CAST(mac AS BLOB), CAST(at AS BLOB), CAST(name AS BLOB), CAST(plugin AS BLOB), CAST(hook AS BLOB),
       CAST(turn AS BLOB), CAST(session AS BLOB), CAST(facts AS BLOB)
FROM audit
"""

_PUT_HEALTH = """
INSERT INTO health VALUES (?, ?, ?) ON CONFLICT (plugin) DO UPDATE SET
    body = CASE
        WHEN json_valid(health.body) AND json_extract(health.body, '$.suspension.moved')
            BETWEEN coalesce(json_extract(excluded.body, '$.suspension.moved'), '') AND excluded.updated
        THEN json_set(excluded.body, '$.suspension', json_extract(health.body, '$.suspension'))
        ELSE excluded.body
    END,
    updated = excluded.updated
"""


class Database:
    """One connection. Used by one thread at a time; the caller sees to that."""

    def __init__(self, connection: "apsw.Connection", path: Path) -> None:
        self._connection = connection
        self._path = path
        self._inode = _inode(path)

    @classmethod
    def write(cls, folder: Path) -> "Database":
        """Open the database for writing; make it, or bring it up to date, where that is needed.

        Raises:
            DatabaseError: it cannot be opened or is not ours. It is never replaced by a new one.
        """
        path = folder / DATABASE
        with faults():
            sweep(path)
            if path.is_symlink():
                raise DatabaseError("not_ours")  # it would lead our writes into somebody else's database
            # Ours to make, so that it is private from its first moment; SQLite gives -wal and -shm its mode.
            if not path.exists():
                create_once(path, b"")
            return cls(connect(path, prepare_writing), path)

    @classmethod
    def read(cls, folder: Path, *, wait: float | None = None) -> "Database":
        """Open the database for reading; it may wait only so long for the locks of other processes.

        Raises:
            DatabaseError: there is none, it cannot be opened or is not ours.
        """
        path = folder / DATABASE
        with faults():
            if not path.exists():
                raise DatabaseError("missing")
            return cls(connect(path, prepare_reading, wait=wait), path)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(sqlite().Error):
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock for a block; commit at its end, durably, or undo all of it.

        Raises:
            DatabaseError: nothing of the block was written, or the file no longer has its name.
        """
        with faults():
            with immediate(self._connection):
                yield
            # Writing to a file that was deleted succeeds, and nobody will ever read it.
            if _inode(self._path) != self._inode:
                raise DatabaseError("missing")

    def head(self) -> Head:
        """Return the last record's number and code."""
        row = self._connection.execute("SELECT seq, mac FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        return Head(seq=row[0], mac=row[1]) if row else Head(seq=0, mac=GENESIS)

    def add_records(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Append records: number, fields, code."""
        self._connection.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def put_receipts(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Store receipts (turn, at, body) over older ones of their turns; keep the newest `RECEIPTS_KEPT`."""
        self._connection.executemany(
            "INSERT INTO receipts VALUES (?, ?, ?)"
            " ON CONFLICT (turn) DO UPDATE SET at = excluded.at, body = excluded.body",
            rows,
        )
        self._connection.execute(
            "DELETE FROM receipts WHERE rowid IN"
            " (SELECT rowid FROM receipts ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)",
            (RECEIPTS_KEPT,),
        )

    def put_health(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Store the health (plugin, body, updated) of plugins over what was known of them.

        A suspension that another host has moved later stays: who writes may not have heard of it.
        """
        self._connection.executemany(_PUT_HEALTH, rows)

    def receipts(self, limit: int) -> list[tuple[str, str]]:
        """Return the newest receipts (turn, body), newest first."""
        return self._pairs("SELECT turn, body FROM receipts ORDER BY at DESC, rowid DESC LIMIT ?", limit)

    def receipt(self, turn: str) -> str | None:
        """Return the body of one turn's receipt."""
        pairs = self._pairs("SELECT turn, body FROM receipts WHERE turn = ?", turn)
        return pairs[0][1] if pairs else None

    def health(self) -> list[tuple[str, str]]:
        """Return every plugin's health (plugin, body), by name."""
        return self._pairs("SELECT plugin, body FROM health ORDER BY plugin")

    def has_records(self) -> bool:
        """Whether anything was ever appended."""
        with faults():
            return self.head().seq > 0

    def tail(self, limit: int) -> list[ChainedEvent]:
        """Return the last records, oldest first."""
        with faults():
            rows = self._connection.execute(_RECORDS + " ORDER BY seq DESC LIMIT ?", (limit,)).fetchall()
        return [_record(*row) for row in reversed(rows)]

    def records(self) -> Iterator[ChainedEvent]:
        """Yield all records by number, as they were at one moment."""
        with faults():
            for row in self._connection.execute(_RECORDS + " ORDER BY seq"):
                yield _record(*row)

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file; nothing when it is sound."""
        with faults():
            found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(20)")]
        return [problem for problem in found if problem != "ok"]

    def _pairs(self, sql: str, *bindings: str | int) -> list[tuple[str, str]]:
        with faults():
            rows = self._connection.execute(sql, bindings).fetchall()
        return [(str(one), str(other)) for one, other in rows]


def _record(seq: int, mac: bytes | None, *fields: bytes | None) -> ChainedEvent:
    at, name, plugin, hook, turn, session, facts = map(_text, fields)
    known: Fields = (at or "", name or "", plugin, hook, turn, session, facts or "")
    return ChainedEvent(seq=seq, fields=known, mac=_text(mac) or "")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _inode(path: Path) -> tuple[int, int]:
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return 0, 0
