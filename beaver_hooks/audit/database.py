"""The host's database; its statements are in `queries.sql`.

One SQLite file in WAL mode. A commit is durable when it returns (`synchronous=FULL`). Every write transaction takes
the write lock at its beginning, so that processes which append at the same time queue up instead of failing.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.audit.chain import GENESIS, ChainedEvent, Fields, Head
from beaver_toolkit.queries import Queries
from beaver_toolkit.row_checksums import row_checksum
from beaver_toolkit.sqlite.connections import integrity_problems
from beaver_toolkit.sqlite.database import Database as SqliteDatabase
from beaver_toolkit.sqlite.errors import translated
from beaver_toolkit.sqlite.migrations import read_migrations

PACKAGE = "beaver_hooks.audit"
DATABASE = "host.db"
RECEIPTS_KEPT = 10_000

TRIGGERS = ("audit_keeps_what_it_has", "audit_loses_nothing", "audit_replaces_nothing")
"""They refuse statements that change or delete records."""

_SQL = Queries(Path(__file__).with_name("queries.sql"))


@attrs.frozen
class StoredReceipt:
    """A stored receipt: the id of its turn, and its body, `None` if the row fails its checksum."""

    turn: str
    body: str | None


class Database:
    """The audit trail, receipts and health in one open database. Used by one thread at a time."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._connection = database.connection

    @classmethod
    def write(cls, folder: Path) -> "Database":
        """Open the database for writing; create or migrate it if needed.

        Raises:
            DatabaseError: it cannot be opened or is not a host's database. It is never replaced by a new one.
        """
        return cls(SqliteDatabase.open(folder / DATABASE, read_migrations(PACKAGE)))

    @classmethod
    def read(cls, folder: Path, *, wait: float | None = None) -> "Database":
        """Open the database for reading; wait at most `wait` seconds for the locks of other processes.

        Raises:
            DatabaseError: it is missing, cannot be opened or is not a host's database.
        """
        return cls(SqliteDatabase.read(folder / DATABASE, read_migrations(PACKAGE), busy_seconds=wait))

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock for a block; commit at its end, durably, or roll all of it back.

        Raises:
            DatabaseError: nothing of the block was written, or the file no longer has its name.
        """
        with self._database.transaction():
            yield

    def head(self) -> Head:
        """Return the last record's number and code."""
        row = self._connection.execute(_SQL["head"]).fetchone()
        return Head(seq=row[0], mac=row[1]) if row else Head(seq=0, mac=GENESIS)

    def add_records(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Append records: number, fields, code."""
        self._connection.executemany(_SQL["add_record"], rows)

    def put_receipts(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Store receipts (turn, at, body) over older ones of their turns; keep the newest `RECEIPTS_KEPT`."""
        sums = [(*row, row_checksum(*(text.encode() for text in row))) for row in rows]
        self._connection.executemany(_SQL["put_receipt"], sums)
        self._connection.execute(_SQL["drop_old_receipts"], (RECEIPTS_KEPT,))

    def put_health(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Store the health (plugin, body, updated) of plugins over their earlier health.

        A suspension that another host changed later stays: this host may not have read it yet.
        """
        self._connection.executemany(_SQL["put_health"], rows)

    def receipts(self, limit: int) -> list[StoredReceipt]:
        """Return the newest receipts, newest first."""
        return self._receipts("receipts", limit)

    def receipt(self, turn: str) -> StoredReceipt | None:
        """Return one turn's receipt."""
        found = self._receipts("receipt", turn)
        return found[0] if found else None

    def health(self) -> list[tuple[str, str]]:
        """Return every plugin's health (plugin, body), by name."""
        return self._pairs(_SQL["health"])

    def has_records(self) -> bool:
        """Whether a record was ever appended."""
        with translated():
            return self.head().seq > 0

    def tail(self, limit: int) -> list[ChainedEvent]:
        """Return the last records, oldest first."""
        with translated():
            rows = self._connection.execute(_SQL["last_records"], (limit,)).fetchall()
        return [_record(*row) for row in reversed(rows)]

    def records_named(self, name: str, after: str) -> list[ChainedEvent]:
        """Return the records of a name that are newer than a moment, oldest first."""
        with translated():
            return [_record(*row) for row in self._connection.execute(_SQL["records_named"], (name, after))]

    def records(self) -> Iterator[ChainedEvent]:
        """Yield all records by number, in the state of one moment."""
        with translated():
            for row in self._connection.execute(_SQL["records"]):
                yield _record(*row)

    def integrity(self) -> list[str]:
        """Return the faults that SQLite finds in the file; none when it is sound."""
        with translated():
            return integrity_problems(self._connection)

    def missing_triggers(self) -> tuple[str, ...]:
        """Return the names of the triggers that should keep the records append-only, and are gone."""
        with translated():
            there = {name for (name,) in self._connection.execute(_SQL["triggers"])}
        return tuple(name for name in TRIGGERS if name not in there)

    def _receipts(self, query: str, binding: str | int) -> list[StoredReceipt]:
        with translated():
            rows: list[Any] = self._connection.execute(_SQL[query], (binding,)).fetchall()
        return [_stored(*row) for row in rows]

    def _pairs(self, sql: str, *bindings: str | int) -> list[tuple[str, str]]:
        with translated():
            rows = self._connection.execute(sql, bindings).fetchall()
        return [(str(one), str(other)) for one, other in rows]


def _stored(turn: bytes, at: bytes, body: bytes, checksum: int) -> StoredReceipt:
    is_whole = row_checksum(turn, at, body) == checksum
    return StoredReceipt(turn.decode(errors="backslashreplace"), body.decode(errors="replace") if is_whole else None)


def _record(seq: int, mac: bytes | None, *fields: bytes | None) -> ChainedEvent:
    at, name, plugin, hook, turn, session, facts = map(_text, fields)
    known: Fields = (at or "", name or "", plugin, hook, turn, session, facts or "")
    return ChainedEvent(seq=seq, fields=known, mac=_text(mac) or "")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "surrogateescape")
