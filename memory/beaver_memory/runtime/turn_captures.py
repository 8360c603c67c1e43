"""Puts committed turns into the queue of the store, and captures the turns that wait there. Blocking.

A turn that fails is tried again after a pause that doubles, with jitter, and by itself, so that it fails no other one.
After `MOST_ATTEMPTS` it is parked, and the memory is degraded until the user retries or drops it.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import attrs

from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.records import Owner, QueuedSession, Store
from beaver_memory.runtime.capture_records import MOST_TEXTS, CaptureReport, CaptureRequest
from beaver_memory.runtime.captures import Captures, never
from beaver_memory.runtime.profile import RuntimeServices
from beaver_memory.runtime.troubles import QUEUE
from beaver_memory.runtime.turn_content import TurnContent, Unreadable, joined, recalled_test
from beaver_memory.store.turn_queue import LONGEST_PAUSE, MOST_ATTEMPTS, QueuedTurn
from beaver_memory.views import Project, Reach, View
from beaver_toolkit.redaction.redactor import Finding, Redactor
from beaver_toolkit.retry import jittered

__all__ = ["QueuedTurn", "TurnCaptures"]

FIRST_PAUSE = timedelta(minutes=1)
"""The pause after the first failure; each further one is twice as long."""

MOST_BATCHES = 50
"""Batches of a session that one call captures; the others are due later."""

MOST_LISTED = 1_000
"""Waiting turns of an owner that are looked at."""

MOST_SESSIONS = 100
"""Sessions that are looked up at once."""


class TurnCaptures:
    """Captures turns by the queue of one store. Thread-safe.

    Args:
        engine: its store holds the queue, and it knows which tenants and projects this process serves.
        captures: captures conversations.
        services: of the process.
        redactor: finds secrets.
    """

    def __init__(self, engine: MemoryEngine, captures: Captures, services: RuntimeServices, redactor: Redactor) -> None:
        self._engine, self._store = engine, engine.store
        self._captures, self._redactor = captures, redactor
        self._clock, self._report, self._troubles = services.clock, services.report, services.troubles

    def put(
        self,
        place: QueuedSession,
        turn: str,
        said: Iterable[Utterance],
        outcomes: Iterable[ToolOutcome] = (),
        was_injected: Callable[[str], bool] = never,
    ) -> bool:
        """Queue a committed turn, durably; return whether it was not there."""
        self._engine.serve(place.owner.tenant, place.project or None)
        content = TurnContent.of_turn(said, outcomes, was_injected, self._redactor)
        queued = QueuedTurn(place=place, turn=turn, content=content.text, queued_at=self._clock.now())
        return self._store.queue.put(queued)

    def knows(self, place: QueuedSession, turn: str) -> bool:
        """Return whether a turn of a session waits or was captured, and was not erased since."""
        # It may be captured between the questions.
        owner = place.owner
        return self._is_captured(owner, turn) or self._waits(place, turn) or self._is_captured(owner, turn)

    def _is_captured(self, owner: Owner, turn: str) -> bool:
        return bool(self._store.captured(owner, [turn]))

    def _waits(self, place: QueuedSession, turn: str) -> bool:
        return any(each.turn == turn for each in self.waiting(place.owner, place.project or None))

    def waiting(self, owner: Owner, project: Project) -> list[QueuedTurn]:
        """Return the turns of an owner in a project that wait, in order."""
        return self._store.queue.waiting(owner, project, limit=MOST_LISTED)

    def retry(self, owner: Owner, project: Project, key: str = "") -> int:
        """Make the parked turns of an owner in a project due, all or the one with a key; return their number."""
        found = self._store.queue.retry(owner, project, self._clock.now(), key)
        self.tell_parked()
        return found

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn that waits; return whether it was there."""
        found = self._store.queue.drop(owner, key)
        self.tell_parked()
        return found

    def erase(self, owner: Owner, project: Project, session: str | None = None) -> int:
        """Erase the turns of an owner in a project that wait, all or those of a session; return their number."""
        found = self._store.queue.erase(owner, project, session)
        self.tell_parked()
        return found

    def tell_parked(self) -> None:
        """Report whether turns are parked, which an earlier process may have left."""
        if any(each.is_parked for reach in self._engine.reaches for each in self._waiting_in(reach)):
            self._troubles.began(QUEUE, "parked", self._report)
        elif self._troubles.last(QUEUE):
            self._troubles.ended(QUEUE, self._report)

    def _waiting_in(self, reach: Reach) -> Iterator[QueuedTurn]:
        for owner in self._store.queue.owners(reach.tenant):
            yield from self.waiting(owner, reach.project)

    def due(self, begun: datetime) -> list[QueuedSession]:
        """Return sessions whose turns are due, or were queued before this process has begun.

        They are of the tenants and projects that this process serves: no model gets the words of another project.
        """
        now, queue = self._clock.now(), self._store.queue
        found = (queue.sessions(now, each, limit=MOST_SESSIONS, before=begun) for each in self._engine.reaches)
        return list(dict.fromkeys(itertools.chain(*found)))[:MOST_SESSIONS]

    def capture(self, place: QueuedSession, *, limit: int) -> list[CaptureReport]:
        """Capture the turns of a session that no other worker has claimed, `limit` together; return the reports.

        What fails is reported, and waits for another attempt.

        Raises:
            StoreError: the queue cannot be used.
        """
        reports: list[CaptureReport] = []
        for _ in range(MOST_BATCHES):
            claimed = self._store.queue.claim(place, self._clock.now(), limit=max(1, limit))
            if not claimed:
                break
            for turns in _together(claimed):
                reports += self._captured(place, turns)
        return reports

    def _captured(self, place: QueuedSession, turns: Sequence[QueuedTurn]) -> list[CaptureReport]:
        known = self._store.captured(place.owner, [each.turn for each in turns])
        left = [each for each in turns if each.turn not in known]
        try:
            found = [self._capture(place, left)] if left else []
            failed = next((item.reason for each in found for item in each.items if item.outcome == "failed"), "")
        except StoreError as error:
            found, failed = [], error.category
        except Exception as error:  # noqa: BLE001 - it is reported, and tried again
            found, failed = [], type(error).__name__
        if failed:
            self._failed(turns, failed)
        else:
            self._store.queue.finish(turns)
        return found

    def _capture(self, place: QueuedSession, turns: Sequence[QueuedTurn]) -> CaptureReport:
        if not all(each.is_whole for each in turns):
            raise Unreadable
        # A capture that begins anew finds the memories of an earlier one by their time.
        content = joined(TurnContent.of_text(each.content).dated(each.queued_at) for each in turns)
        request = CaptureRequest(
            said=content.said[-MOST_TEXTS:],
            outcomes=content.outcomes[-MOST_TEXTS:],
            own=_own(place, self._clock.now()),
            store=place.store,
            paths=dict.fromkeys(path for each in content.outcomes for path in each.files),
        )
        report = self._captures.found(request, recalled_test(content.recalled))
        redacted = (Finding(kind=kind, count=count) for kind, count in sorted(content.redacted.items()))
        return attrs.evolve(report, redacted=(*report.redacted, *redacted))

    def _failed(self, turns: Sequence[QueuedTurn], error: str) -> None:
        attempts = max(each.attempts for each in turns)
        is_parked = attempts >= MOST_ATTEMPTS or error == Unreadable.__name__
        pause = jittered(attempts, first=FIRST_PAUSE.total_seconds(), longest=LONGEST_PAUSE.total_seconds())
        until = None if is_parked else self._clock.now() + timedelta(seconds=pause)
        event = "memory_turns_parked" if is_parked else "memory_turns_postponed"
        self._report.event(event, error=error, turns=len(turns), attempts=attempts)
        if is_parked:
            self._troubles.began(QUEUE, "parked", self._report)
        self._store.queue.postpone(turns, until, error)


def _together(turns: Sequence[QueuedTurn]) -> Iterator[Sequence[QueuedTurn]]:
    """Yield turns that are captured for the first time together, and each other one by itself."""
    if first := [each for each in turns if each.attempts == 1]:
        yield first
    yield from ([each] for each in turns if each.attempts > 1)


def _own(place: QueuedSession, now: datetime) -> Filters:
    stores = [*Store]
    return Filters(
        view=View(
            owners=(place.owner,),
            stores=tuple(stores[stores.index(place.store) :]),
            project=place.project or None,
            session=place.session,
            agent=place.agent,
            now=now,
        )
    )
