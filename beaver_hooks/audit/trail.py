"""The default audit sink: one SQLite file in the state folder, written by one thread per host."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from queue import Empty
from typing import Self

from beaver_hooks.audit import loss_notes
from beaver_hooks.audit.batch import Body, HealthRow, ReceiptRow
from beaver_hooks.audit.chain import identifier_key, identify
from beaver_hooks.audit.database import DATABASE, Database
from beaver_hooks.audit.events import AuditEvent, Facts
from beaver_hooks.audit.key import KEY_FILE, Key, make_key, read_key
from beaver_hooks.audit.reader import TrailReader, missing_key, unavailable
from beaver_hooks.audit.writer import StateChange, Writer
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import AuditUnavailable, Clock, SystemClock
from beaver_toolkit.sqlite.errors import DatabaseError
from beaver_toolkit.sqlite.losses import databases_with_losses, losses_of


class Trail(TrailReader):
    """A host's audit trail, receipts and health. Implements `AuditSink`.

    It takes entries at once, from any thread, and writes them soon; `flush` waits until they are durable. Several
    processes may have a trail open in the same folder: their events share one chain.

    A trail belongs to the process that opened it. In a forked child it drops entries, and every method that returns
    data raises `AuditUnavailable`. Open another trail there only if none was open in the parent when it forked:
    SQLite cannot tell the two apart.
    """

    def __init__(self, folder: Path, key: bytes, writer: Writer, clock: Clock) -> None:
        super().__init__(folder)
        self._identifier_key = identifier_key(key)
        self._writer = writer
        self._clock = clock
        self._closed: int | None = None

    @classmethod
    def open(cls, folder: Path, *, clock: Clock | None = None) -> Self:
        """Open the trail in a state folder, and make missing files there.

        Args:
            folder: the state folder.
            clock: the time of the trail's own events.

        Raises:
            AuditUnavailable: it cannot be used; says why and what to do. No existing file is replaced.
        """
        folder = make_state_folder(folder)
        is_lost = _is_lost(folder)
        database, clock = _open(folder), clock or SystemClock()
        with _closed_on_error(folder, database):
            key = _key(folder, database)
            writer = Writer(folder, key.secret, clock=clock)
            writer.start(database)
        trail = cls(folder, key.secret, writer, clock)
        if is_lost:
            trail.append(AuditEvent(name="audit_restarted", at=clock.now(), facts={"reason": "missing_at_start"}))
        if key.tightened:
            trail.append(AuditEvent(name="audit_key_tightened", at=clock.now()))
        trail._report_losses()
        trail._report_missing_commits()
        return trail

    def _report_losses(self) -> None:
        """Record what earlier trails in this folder could not write."""
        found = list(loss_notes.notes(self._folder))
        for _, lost in found:
            facts: Facts = {"lost": lost, "reason": "closed"}
            self.append(AuditEvent(name="audit_gap", at=self._clock.now(), facts=facts))
        if found:
            # The notes stay until the events are durable.
            with contextlib.suppress(AuditUnavailable):
                self.flush()
                for path, _ in found:
                    path.unlink(missing_ok=True)

    def _report_missing_commits(self) -> None:
        """Record that databases in this folder lack acknowledged commits, until the user accepts that."""
        for database in databases_with_losses(self._folder):
            commits = sum(each.commits for each in losses_of(database))
            facts: Facts = {"database": database.name, "commits": commits}
            self.append(AuditEvent(name="commits_missing", at=self._clock.now(), facts=facts))

    def append(self, event: AuditEvent) -> None:
        """Take an event and return at once."""
        self._writer.offer(event)

    def next_change(self, timeout: float | None = None) -> StateChange | None:
        """Return the next change between writing and failing to write, or `None` if there is none in `timeout`."""
        try:
            return self._writer.changes.get(timeout is not None, timeout)
        except Empty:
            return None

    def put_receipt(self, turn: str, at: datetime, body: Body) -> None:
        """Take the receipt of a turn and return at once; it replaces the earlier receipt of that turn.

        A callable body is called later, in the writer's thread, and only if no newer receipt of the same turn came
        in the meantime. It must not read objects that the event loop may still change.
        """
        self._writer.offer(ReceiptRow(turn=turn, at=at, body=body))

    def put_health(self, plugin: str, body: Mapping[str, object]) -> None:
        """Take the health of a plugin and return at once; it replaces the earlier health of that plugin."""
        self._writer.offer(HealthRow(plugin=plugin, at=self._clock.now(), body=dict(body)))

    def identify(self, value: str) -> str:
        """Return the keyed hash of an id or a prompt that could identify a person."""
        return identify(self._identifier_key, value)

    def flush(self) -> None:
        """Wait until every entry taken so far is durable.

        Raises:
            AuditUnavailable: some are not. They are kept, and written again later.
        """
        self._refuse_fork()
        failure = "closed" if self._closed is not None else self._writer.flush()
        if failure is not None:
            raise unavailable(self._folder, failure)

    def close(self, timeout: float = 5.0) -> int:
        """Write the taken entries, within `timeout` seconds; return how many entries the trail ever lost.

        Afterwards the trail takes no entries; reading still works. Closing again returns the same. In a forked child
        it does nothing and returns 0: the parent writes the entries from before the fork.
        """
        if self._writer.forked:
            return 0
        if self._closed is None:
            self._closed = self._writer.stop(timeout)
            if unreported := self._writer.unreported:
                loss_notes.leave(self._folder, unreported)
        return self._closed


def _is_lost(folder: Path) -> bool:
    """Return whether the key is there and the database is gone. The database is made first, so it was removed."""
    if not os.path.lexists(folder / KEY_FILE):
        return False
    try:
        return (folder / DATABASE).stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def _closed_on_error(folder: Path, database: Database) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        database.close()
        raise unavailable(folder, error.category) from error
    except BaseException:
        database.close()
        raise


def _open(folder: Path) -> Database:
    try:
        return Database.write(folder)
    except DatabaseError as error:
        raise unavailable(folder, error.category) from error


def _key(folder: Path, database: Database) -> Key:
    """Return the key, a new one for a new database.

    Raises:
        AuditUnavailable: the key cannot be used, or it is gone.
    """
    key = read_key(folder)
    if key is None and database.has_records():
        # Another process may have made the key and its first record since the first read.
        key = read_key(folder)
        if key is None:
            raise missing_key(folder)
    return key or make_key(folder)
