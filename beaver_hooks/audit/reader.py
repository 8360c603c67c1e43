"""Reads a host's database, from the host or from any other process, also while the host writes it."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.audit import chain
from beaver_hooks.audit.chain import ChainCheck, ChainedEvent, Head
from beaver_hooks.audit.database import DATABASE, RECEIPTS_KEPT, Database
from beaver_hooks.audit.events import AuditEvent, stamp
from beaver_hooks.audit.key import KEY_FILE, read_key
from beaver_hostspecs import AuditUnavailable
from beaver_toolkit.sqlite.errors import DatabaseError

_REMEDIES = {
    "cannot_open": "cannot be opened; check who owns it and its folder",
    "closed": "is closed",
    "corrupt": "is damaged or not a database; move it away, with its -wal and -shm files, and restore a backup",
    "disk_full": "cannot grow: the disk is full; make room",
    "forked": "was opened by another process; open it after the fork, or start the child by spawning",
    "io_error": "cannot be read or written; check the disk",
    "exchanged": "was replaced while it was in use; keep it, and find out which program did that",
    "in_use": "is used by a process that has lost its -wal or -shm file; end that process, or try again",
    "link": "is a symbolic link; put the file itself in its place",
    "log_lost": "lost its -wal file while it was in use; the newest events may be lost",
    "log_removed": "lost its -wal or -shm file while it was in use; nothing stored is lost; try again",
    "locked": "is locked by another process; end the one that holds it",
    "missing": "does not exist; a host creates it when it opens",
    "newer": "was written by a newer version of Beaver Hooks; update this one",
    "no_locks": "is on a disk that has neither hard links nor file locks; use another disk",
    "not_ours": "is a database, but not an audit trail; move it away",
    "broken": "is a database, but not an audit trail; move it away",
    "overwritten": "was overwritten while it was in use; run `beaver doctor`",
    "read_only": "is read-only; check who owns it and its folder",
}


def unavailable(folder: Path, category: str) -> AuditUnavailable:
    """Return the error for a category: the file, its fault, and the remedy."""
    return AuditUnavailable(f"The audit trail {folder / DATABASE} {_REMEDIES.get(category, f'failed: {category}')}.")


class TrailReader:
    """Reads a host's database. Every result is the committed state of one moment.

    Every method opens a connection of its own, and raises `AuditUnavailable` if the database cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = os.getpid()

    def receipt(self, turn: str) -> Mapping[str, Any] | None:
        """Return the receipt of a turn, or `None` if it was never stored or has been dropped.

        Raises:
            AuditUnavailable: it fails its checksum, too.
        """
        with self._reading() as database:
            found = database.receipt(turn)
        if found is not None and found.body is None:
            raise AuditUnavailable(
                f"The receipt of {found.turn} is damaged, so it is not shown; restore {self._folder / DATABASE} from a"
                " backup. `beaver doctor` names every damaged receipt."
            )
        return None if found is None else _mapping(found.body or "")

    def receipts(self, limit: int = 20) -> dict[str, Mapping[str, Any]]:
        """Return the receipts of the newest turns, newest first, without those that fail their checksums."""
        with self._reading() as database:
            return {each.turn: _mapping(each.body) for each in database.receipts(limit) if each.body is not None}

    def recorded_turns(self, limit: int) -> tuple[str, ...]:
        """Return the newest turns that have a receipt, newest first, also a damaged one."""
        with self._reading() as database:
            return tuple(each.turn for each in database.receipts(limit))

    def damaged_receipts(self) -> tuple[str, ...]:
        """Return the turns whose receipts fail their checksums."""
        with self._reading() as database:
            return tuple(each.turn for each in database.receipts(RECEIPTS_KEPT) if each.body is None)

    def health(self, *, wait: float | None = None) -> dict[str, Mapping[str, Any]]:
        """Return the last known health by plugin; wait at most `wait` seconds for another process's lock."""
        with self._reading(wait) as database:
            return {plugin: _mapping(body) for plugin, body in database.health()}

    def tail(self, limit: int = 20) -> list[AuditEvent]:
        """Return the last events, oldest first."""
        with self._reading() as database:
            return [_event(record) for record in database.tail(limit)]

    def named(self, name: str, *, after: datetime) -> list[AuditEvent]:
        """Return the events of a name that are newer than a moment, oldest first."""
        with self._reading() as database:
            return [_event(record) for record in database.records_named(name, stamp(after))]

    def head(self) -> Head:
        """Return the end of the chain (seq 0: it is empty). Keep it where writers of this folder cannot change it."""
        with self._reading() as database:
            records = database.tail(1)
        return Head(seq=records[0].seq, mac=records[0].mac) if records else Head(seq=0, mac=chain.GENESIS)

    def verify(self, *, expected_head: Head | None = None) -> ChainCheck:
        """Check the whole chain and name the first bad record.

        The chain alone cannot show that its last records were cut off, nor that all of it was replaced together with
        the key. A head that was kept elsewhere can: pass it as `expected_head`. The result also counts what the records
        themselves report: lost events, and trails that were gone.
        """
        with self._reading() as database:
            key = read_key(self._folder)
            if key is None:
                raise missing_key(self._folder)
            reports = _Reports()
            records = reports.counted(database.records())
            found = chain.verify(records, chain.chain_key(key.secret), expected_head=expected_head)
            gone = database.missing_triggers()
        return attrs.evolve(found, lost=reports.lost, restarts=reports.restarts, missing_triggers=gone)

    def integrity(self) -> list[str]:
        """Return the faults that SQLite finds in the file; none when it is sound."""
        with self._reading() as database:
            return database.integrity()

    def faults(self) -> list[str]:
        """Return the faults that SQLite finds in the file, else the damaged receipts."""
        return self.integrity() or [f"the receipt of {each} fails its checksum" for each in self.damaged_receipts()]

    @contextlib.contextmanager
    def _reading(self, wait: float | None = None) -> Iterator[Database]:
        self._refuse_fork()
        try:
            database = Database.read(self._folder, wait=wait)
            with contextlib.closing(database):
                yield database
        except DatabaseError as error:
            raise unavailable(self._folder, error.category) from error

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            raise unavailable(self._folder, "forked")


class _Reports:
    """Counts the events by which a trail reports its own losses."""

    def __init__(self) -> None:
        self.lost = 0
        self.restarts = 0

    def counted(self, records: Iterable[ChainedEvent]) -> Iterator[ChainedEvent]:
        """Yield the records."""
        for record in records:
            name, facts = record.fields[1], record.fields[-1]
            self.restarts += name == "audit_restarted"
            lost = _mapping(facts).get("lost") if name == "audit_gap" else 0
            self.lost += lost if isinstance(lost, int) else 0
            yield record


def missing_key(folder: Path) -> AuditUnavailable:
    """Return the error for a trail whose key is gone."""
    return AuditUnavailable(
        f"The audit trail {folder / DATABASE} has records, but its key {folder / KEY_FILE} is missing."
        f" Restore the key from a backup, or move {DATABASE} (with its -wal and -shm files) away to start"
        " anew."
    )


def _mapping(text: str) -> dict[str, Any]:
    # Another program may have written anything here; the result says that it is unreadable, instead of an error.
    try:
        value = json.loads(text)
    except ValueError:
        return {"unreadable": True}
    return value if isinstance(value, dict) else {"unreadable": True}


def _event(record: ChainedEvent) -> AuditEvent:
    at, name, plugin, hook, turn, session, facts = record.fields
    return AuditEvent(
        name=name,
        at=_time(at),
        plugin=plugin,
        hook=hook,
        turn=turn,
        session=session,
        facts=_mapping(facts),
    )


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
