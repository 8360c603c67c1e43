"""The one thread that writes a host's database.

It sleeps on its queue. The first item wakes it, more items gather for a short time (no caller waits for them, and
the thread shares the interpreter with the event loop), and all of them become one transaction. While writing fails,
the thread keeps its items in memory, tries again after growing pauses, and drops none; items beyond `MOST_WAITING`
are refused and counted, and the count becomes an event as soon as writing works again.
"""

import os
import queue
import threading
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks.audit.batch import Batch, Flush, Item, Stop, attempt, host_event
from beaver_hooks.audit.chain import Fields, chain_key, link
from beaver_hooks.audit.database import Database
from beaver_hooks.log import make_log
from beaver_hostspecs import Clock
from beaver_toolkit.sqlite.errors import DatabaseError

GATHERING = 0.02
"""Seconds between the first item and the commit, unless a caller flushes."""
MOST_WAITING = 10_000
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0

_RESTARTS = {"missing": "file_vanished", "exchanged": "file_replaced", "log_lost": "log_removed"}
"""Why the next event may not follow the last one, by the category of the failure."""


@attrs.frozen
class StateChange:
    """Writing began to fail, with the category of the `failure`, or works again, with `None`."""

    failure: str | None


class Connector:
    """Holds the writer's connection, and opens it again after a failure.

    Only the frame of the writer's thread holds it. A forked child has no such thread, so it never closes the
    connection, which SQLite forbids.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._database: Database | None = database

    def database(self) -> Database:
        """Return the open database.

        Raises:
            DatabaseError: it cannot be opened.
        """
        if self._database is None:
            self._database = Database.write(self._folder)
        return self._database

    def close(self) -> None:
        """Close the connection, if there is one."""
        database, self._database = self._database, None
        if database is not None:
            database.close()


class Writer:
    """Takes items from any thread and writes them in a thread of its own.

    Attributes:
        changes: the changes of the writer's state, for the host's health; each was logged when it happened.
    """

    def __init__(self, folder: Path, key: bytes, *, clock: Clock) -> None:
        self._folder = folder
        self._key = chain_key(key)
        self.changes: queue.SimpleQueue[StateChange] = queue.SimpleQueue()
        self._log = make_log()
        self._clock = clock
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._hurry = threading.Event()
        self._batch = Batch()
        self._room = MOST_WAITING
        self._lock = threading.Lock()
        self._refused = 0
        self._confessed = 0
        self._failure: str | None = None
        self._pause = 0.0
        self._ended = False
        self._pid = os.getpid()
        self._opened: queue.SimpleQueue[Database] = queue.SimpleQueue()
        self._taken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beaver-hooks-audit", daemon=True)

    @property
    def forked(self) -> bool:
        """Whether this is a forked child, which has no writer."""
        return os.getpid() != self._pid

    def start(self, database: Database) -> None:
        """Start the thread, which alone holds the open database from now on."""
        self._opened.put(database)
        self._thread.start()
        self._taken.wait()

    def offer(self, item: Item) -> None:
        """Take an item and return at once; refuse and count it if the queue is full. Does nothing in a fork."""
        # The user waits for this code alone: it takes no lock, and wakes no thread while items gather.
        if os.getpid() != self._pid:
            return
        if self._queue.qsize() < self._room:
            self._queue.put(item)
        else:
            self._refuse()

    def flush(self) -> str | None:
        """Wait until every taken item is durable; return the category of the failure, or `None`."""
        flush = Flush()
        self._queue.put(flush)
        self._hurry.set()
        # The thread sets `_ended` before it empties the queue for the last time, so it overlooks no flush.
        if not self._ended:
            flush.done.wait()
        return flush.failure if flush.done.is_set() else "closed"

    @property
    def unreported(self) -> int:
        """How many entries were lost without an event that says so; final once `stop` has returned."""
        return self._refused + len(self._batch) + self._queue.qsize() - self._confessed

    def stop(self, timeout: float) -> int:
        """Write the taken items and end, within `timeout` seconds; return how many entries were ever lost."""
        self._room = 0
        self._queue.put(Stop())
        self._hurry.set()
        self._thread.join(timeout)
        if not self._thread.is_alive():
            # Again: a caller may have queued an item while the thread ended.
            self._end("closed")
        return self._refused + len(self._batch) + self._queue.qsize()

    def _refuse(self) -> None:
        with self._lock:
            self._refused += 1

    def _run(self) -> None:
        connector = Connector(self._folder, self._opened.get())
        self._taken.set()
        _, died = attempt(partial(self._work, connector))
        connector.close()
        if died:
            # The code above should not raise. If it does, report it to the host.
            self._began_to_fail("writer_died")
        self._end("writer_died" if died else "closed")

    def _end(self, reason: str) -> None:
        self._room = 0
        self._ended = True
        # Release the waiting flushes, and count the items that will not be written.
        while not self._queue.empty():
            attempt(partial(self._batch.take, self._queue.get()))
        self._batch.release(reason)

    def _work(self, connector: Connector) -> None:
        while not self._batch.stopped:
            self._gather()
            self._write(connector)

    def _gather(self) -> None:
        if self._batch.empty:
            self._batch.take(self._queue.get())
        self._hurry.wait(self._pause or GATHERING)
        self._hurry.clear()
        while not self._queue.empty():
            self._batch.take(self._queue.get())
        self._make_room()

    def _make_room(self) -> None:
        if not self._batch.stopped:
            self._room = MOST_WAITING - len(self._batch)

    def _write(self, connector: Connector) -> None:
        try:
            if not self._batch.empty:
                self._commit(connector.database())
        except DatabaseError as error:
            connector.close()
            self._failed(error.category)
        else:
            self._succeeded()

    def _commit(self, database: Database) -> None:
        self._batch.evaluate()
        lost = self._refused - self._confessed
        gap = [host_event("audit_gap", self._clock.now(), lost=lost)] if lost else []
        with database.transaction():
            database.add_records(self._chained(database, [*self._batch.events, *gap]))
            if self._batch.receipts:
                database.put_receipts(self._batch.receipts)
            if self._batch.health:
                database.put_health(self._batch.health)
        self._confessed += lost

    def _chained(self, database: Database, events: list[Fields]) -> list[tuple[object, ...]]:
        # Under the write lock: other processes append to the same chain.
        head = database.head()
        seq, mac, rows = head.seq, head.mac, list[tuple[object, ...]]()
        for fields in events:
            seq += 1
            mac = link(self._key, mac, seq, fields)
            rows.append((seq, *fields, mac))
        return rows

    def _failed(self, category: str) -> None:
        if reason := _RESTARTS.get(category):
            # The first event of the other file shows that it is not the whole trail.
            self._batch.events.insert(0, host_event("audit_restarted", self._clock.now(), reason=reason))
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self._batch.release(category)
        if self._failure is None:
            self._began_to_fail(category)

    def _began_to_fail(self, category: str) -> None:
        self._failure = category
        self._log.error("audit_not_written", category=category)
        self.changes.put(StateChange(category))

    def _succeeded(self) -> None:
        self._batch.clear()
        self._batch.release(None)
        self._make_room()
        if self._failure is not None:
            self._failure, self._pause = None, 0.0
            self._log.warning("audit_written_again")
            self.changes.put(StateChange(None))
