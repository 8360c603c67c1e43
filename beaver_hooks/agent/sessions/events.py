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

    Who runs turns says which session a turn belongs to, before opening it. An event is taken at once, from any
    thread, and written soon, many in one transaction. Events of unknown turns, and those of no turn, are none of a
    session's business and are left to the trail.

    Attributes:
        lost: how many events could not be stored: there was no room, no session any more, or no store.
        failure: why writing fails at present, or `None`; what waits is kept and tried again with the next event.
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
        """Say which session a turn belongs to. The newest `MOST_TURNS` turns are remembered."""
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
        """Wait until everything given so far is durable.

        Raises:
            StorageError: it is not. It is kept all the same, and tried again with the next event.
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
            # What failed is tried again with the next event, not at once and for ever.
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
