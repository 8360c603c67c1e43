"""Puts committed turns into the queue of the store, and captures the turns that wait there. Blocking.

A turn that fails is tried again after a pause that doubles, with jitter, and by itself, so that it fails no other one.
After `MOST_ATTEMPTS` it is parked, and the memory is degraded until the user retries or drops it.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
from attrs import field

from beaver_memory.capture.features import content_words
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.capture.rules import asked_among
from beaver_memory.capture.sentences import LONGEST, sentences, without_private
from beaver_memory.capture.vocabulary import vocabulary_of
from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.records import Owner, QueuedSession, Store
from beaver_memory.runtime.capture_records import MOST_TEXTS, CaptureReport, CaptureRequest
from beaver_memory.runtime.captures import Captures, never
from beaver_memory.runtime.profile import RuntimeServices
from beaver_memory.runtime.troubles import QUEUE
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

_ECHO = 0.8
"""The share of words in common with recalled sentences from which a statement counts as recalled."""


class Unreadable(Exception):
    """The content of a row is not that of a turn."""


def _said(values: Iterable[Utterance]) -> tuple[Utterance, ...]:
    return tuple(values)


def _recalled(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _counts(values: Mapping[str, int]) -> dict[str, int]:
    return dict(values)


def _outcomes(values: Iterable[ToolOutcome]) -> tuple[ToolOutcome, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class TurnContent:
    """What capture needs of a turn.

    Attributes:
        said: the messages, in order, with those before them that help to understand them.
        outcomes: how its tools ended, in order.
        recalled: the statements among its messages that the host had injected.
        redacted: how many secrets of each kind were left out.
    """

    said: tuple[Utterance, ...] = field(converter=_said, repr=False)
    outcomes: tuple[ToolOutcome, ...] = field(default=(), converter=_outcomes)
    recalled: tuple[str, ...] = field(default=(), converter=_recalled, repr=False)
    redacted: Mapping[str, int] = field(factory=dict, converter=_counts)

    @classmethod
    def of_turn(
        cls,
        said: Iterable[Utterance],
        outcomes: Iterable[ToolOutcome],
        was_injected: Callable[[str], bool],
        redactor: Redactor,
    ) -> "TurnContent":
        """Return the content of a turn: bounded, and without private spans and secrets.

        Args:
            said: the messages.
            outcomes: how its tools ended.
            was_injected: whether the host injected a text; only the process of the turn can tell.
            redactor: finds secrets.
        """
        counts = Counter[str]()

        def plain(text: str) -> str:
            done = redactor.redact(without_private(text)[:LONGEST])
            counts.update({each.kind: each.count for each in done.findings})
            return done.text

        clean = [attrs.evolve(each, text=plain(each.text)) for each in said]
        recalled = [each for text in clean if not text.is_context for each in _statements(text) if was_injected(each)]
        tools = [
            attrs.evolve(each, command=plain(each.command), files=tuple(map(plain, each.files))) for each in outcomes
        ]
        return cls(said=clean, outcomes=tools, recalled=recalled, redacted=counts)

    def dated(self, when: datetime) -> "TurnContent":
        """Return the content with a time for each message that may be captured and has none."""
        said = (each if each.when or each.is_context else attrs.evolve(each, when=when) for each in self.said)
        return attrs.evolve(self, said=said)

    @property
    def text(self) -> str:
        """The content as JSON."""
        return json.dumps(attrs.asdict(self), ensure_ascii=False, separators=(",", ":"), default=datetime.isoformat)

    @classmethod
    def of_text(cls, text: str) -> "TurnContent":
        """Return the content from JSON.

        Raises:
            Unreadable: it is none.
        """
        try:
            found = json.loads(text)
            return cls(
                said=[_utterance(each) for each in found["said"]],
                outcomes=[ToolOutcome(**each) for each in found["outcomes"]],
                recalled=found["recalled"],
                redacted=found["redacted"],
            )
        except (ValueError, TypeError, KeyError) as error:
            raise Unreadable from error


def joined(contents: Iterable[TurnContent]) -> TurnContent:
    """Return the contents of consecutive turns as one; a message that several have as context is there once."""
    each = [*contents]
    said = dict.fromkeys(text for content in each for text in content.said)
    return TurnContent(
        # The answer to a question comes right after it, so texts from outside come first.
        said=sorted(said, key=lambda text: not text.external),
        outcomes=(outcome for content in each for outcome in content.outcomes),
        recalled=(text for content in each for text in content.recalled),
        redacted=sum((Counter(content.redacted) for content in each), Counter[str]()),
    )


def recalled_test(recalled: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a statement consists of recalled ones."""
    known = frozenset(word for text in recalled for word in content_words(text, vocabulary_of(text)))

    def was_recalled(text: str) -> bool:
        ours = content_words(text, vocabulary_of(text)) if known else frozenset()
        return bool(ours) and len(ours & known) >= _ECHO * len(ours)

    return was_recalled


def _statements(said: Utterance) -> list[str]:
    """Return the sentences of a message, and what the user asks to remember in them."""
    found = sentences(said.text)
    return [*(each.text for each in found), *asked_among(found, said.text)]


def _utterance(fields: dict[str, Any]) -> Utterance:
    when = fields["when"]
    return Utterance(**fields | {"when": None if when is None else datetime.fromisoformat(when)})


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
