"""The host's audit events as hidden events of the sessions that they belong to."""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from concurrent.futures import Future

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions.records import HiddenEvent
from beaver_hooks.agent.sessions.store import SessionStore
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.audit.events import AuditEvent

MOST_WAITING = 5000
MOST_TURNS = 5000


class SessionEvents:
    """Stores the audit events of turns in their sessions. Implements `AuditSink`.

    The caller registers the session of a turn before opening the turn. An event is taken at once, from any thread, and
    written soon, many in one transaction. Events of unknown turns, and those of no turn, belong to no session and are
    left to the trail.

    Attributes:
        lost: the number of events that could not be stored: the queue was full, or the session or the store was gone.
        failure: why writing fails at present, or `None`; waiting events are kept and tried again with the next one.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._waiting: deque[tuple[str, HiddenEvent]] = deque()
        self._scheduled = False
        self._lock = threading.Lock()
        self.lost = 0
        self.failure: str | None = None

    def register(self, turn: str, session: str) -> None:
        """Register the session of a turn. The newest `MOST_TURNS` turns are kept."""
        with self._lock:
            self._sessions[turn] = session
            if len(self._sessions) > MOST_TURNS:
                self._sessions.popitem(last=False)

    def append(self, event: AuditEvent) -> None:
        """Take an event and return at once. Never raises."""
        with self._lock:
            session = self._sessions.get(event.turn or "")
            if session is None:
                return
            if len(self._waiting) >= MOST_WAITING:
                self.lost += 1
                return
            self._waiting.append((session, _hidden(event)))
            scheduled, self._scheduled = self._scheduled, True
        if not scheduled:
            self._schedule()

    async def flush(self) -> None:
        """Wait until all events so far are durable.

        Raises:
            StorageError: they are not. They are kept all the same, and tried again with the next event.
        """
        await asyncio.wrap_future(self._store.submit(self._write))

    def _schedule(self) -> None:
        try:
            self._store.submit(self._write).add_done_callback(self._written)
        except StorageError as error:
            with self._lock:
                self.failure, self._scheduled = str(error), False
                self.lost += len(self._waiting)
                self._waiting.clear()

    def _write(self, work: Work) -> None:
        with self._lock:
            batch = [*self._waiting]
        gone = work.add_events(_by_session(batch)) if batch else 0
        with self._lock:
            self.lost += gone
            for _ in batch:
                self._waiting.popleft()

    def _written(self, done: Future[None]) -> None:
        error = done.exception()
        with self._lock:
            self.failure = None if error is None else str(error)
            # Failed events are tried again with the next event, not at once and for ever.
            self._scheduled = bool(self._waiting) and error is None
            again = self._scheduled
        if again:
            self._schedule()


def _hidden(event: AuditEvent) -> HiddenEvent:
    about = {"plugin": event.plugin, "hook": event.hook, "turn": event.turn}
    known = {key: value for key, value in about.items() if value is not None}
    return HiddenEvent(name=event.name, at=event.at, payload={**event.facts, **known})


def _by_session(batch: Iterable[tuple[str, HiddenEvent]]) -> dict[str, list[HiddenEvent]]:
    grouped: dict[str, list[HiddenEvent]] = {}
    for session, event in batch:
        grouped.setdefault(session, []).append(event)
    return grouped
