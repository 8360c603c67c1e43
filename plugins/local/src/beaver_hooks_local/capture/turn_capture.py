"""Captures from the turns of a host, in the background: the user never waits for it.

Each committed turn goes into the queue of the store at once. This process keeps only the context of the next turn of a
session, and the turns that the store could not take.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs
from attrs import field

from beaver_hooks_local.capture.session_contexts import SessionContexts
from beaver_hooks_local.errors import MessagesLost
from beaver_hooks_local.settings import CaptureSettings
from beaver_hooks_local.tools.definitions import PLANE
from beaver_hooks_local.trust import default_store
from beaver_hooks_local.visibility import Home, Visibility
from beaver_hostspecs import Answer, Clock, Compaction, OutcomeKind, Personal, Report, ToolResult, Turn
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.capture.rules import asks_to_remember
from beaver_memory.records import QueuedSession
from beaver_memory.runtime.capture_records import CapturedItem, CaptureReport

if TYPE_CHECKING:
    from beaver_hooks_local.memory import LocalMemory

T = TypeVar("T")

WATCH_SECONDS = 30.0
"""The pause between two looks for turns that are due."""

MOST_UNQUEUED = 200
"""Turns that are kept while the store takes none."""

LONGEST = 20_000
"""Characters of an answer or of an external text."""

MACHINES = frozenset({"tool", "tool_result"})
"""Who has caused a turn that no person said."""

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file", "file_path", "filename", "notebook_path")
_LONGEST_ARGUMENT = 1_000

_KINDS = MappingProxyType({each.value: each for each in OutcomeKind})


class Serve(Protocol):
    """Runs work with the open memory, off the event loop."""

    def __call__(self, work: "Callable[[LocalMemory], T]", /, *, wrote: bool = False) -> Awaitable[T]:
        """Return the result of `work`."""


@attrs.frozen(kw_only=True, eq=False)
class _Committed:
    """A committed turn on its way into the queue."""

    place: QueuedSession
    turn: str
    said: tuple[Utterance, ...] = field(repr=False)
    outcomes: tuple[ToolOutcome, ...]
    was_injected: Callable[[str], bool] = field(repr=False)

    @property
    def before(self) -> str:
        """The id of the turn before it in the session, which it is understood by; empty for the first one."""
        return next((each.turn for each in self.said if each.turn != self.turn and not each.external), "")

    def put(self, memory: "LocalMemory") -> bool:
        """Queue it; return whether what it is understood by is still there.

        If another process has erased the turn before it, its words must not come back with this one.
        """
        turns = memory.operations.turns
        is_known = not self.before or turns.knows(self.place, self.before)
        said = self.said if is_known else tuple(each for each in self.said if each.turn == self.turn)
        turns.put(self.place, self.turn, said, self.outcomes, self.was_injected)
        return is_known


class TurnCapture:
    """Queues the turns of each session, and captures them together. In the event loop only.

    Args:
        settings: of capture.
        serve: runs work with the open memory.
        clock: the source of time.
        report: for captures outside turns.
        home: the tenant and the project of this process.
    """

    def __init__(self, settings: CaptureSettings, serve: Serve, clock: Clock, report: Report, home: Home) -> None:
        self._settings, self._serve, self._clock, self._report = settings, serve, clock, report
        self._home = home
        self._contexts = SessionContexts()
        self._unqueued: deque[_Committed] = deque()
        self._lost: set[QueuedSession] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._begun = clock.now()
        self._seen: set[QueuedSession] = set()

    def begin(self) -> None:
        """Begin to capture what earlier processes have left, and sessions that are silent."""
        if self._settings.enabled:
            self._task = asyncio.create_task(self._watch(), name="beaver-memory-capture")

    async def end(self) -> None:
        """Capture the turns that this process has queued; those that take too long wait for the next one."""
        self._ending.set()
        if self._task is not None:
            try:
                # The capture that runs reports how it ended.
                await asyncio.wait([self._task])
            finally:
                self._task.cancel()
        await self.flush()
        if self._task is not None:
            # In a shared database, the turns of this process have shown which earlier ones are its own.
            for place in await self._due():
                await self._capture(place)

    def tool(self, turn: Turn, result: ToolResult) -> None:
        """Keep how a tool ended; of a private result nothing is kept."""
        if self._settings.enabled and not result.private and (place := _place_of(turn, self._home)) is not None:
            self._contexts.tool(place, tool_outcome(result), external_text(turn, result))

    def dropped(self, turn: Turn) -> None:
        """Forget how the tools of a turn without an answer ended. Its prompt was never kept."""
        if (place := _place_of(turn, self._home)) is not None:
            self._contexts.drop_tools(place)

    async def committed(self, turn: Turn, answer: Answer, report: Report) -> None:
        """Queue a turn, and capture the session once enough messages wait, or the user asks for it."""
        if not self._settings.enabled:
            return
        place = _place_of(turn, self._home)
        if place is None:
            report.decision("capture", "skip", "trust")
            return
        said, outcomes = self._contexts.turn(place, utterances(turn, answer))
        self._keep(_Committed(place=place, turn=turn.id, said=said, outcomes=outcomes, was_injected=turn.was_injected))
        await self._queue()
        waiting, wanted = self._contexts.messages(place), self._settings.min_turn_messages
        if waiting >= wanted or asks_to_remember(turn.prompt):
            for each in await self._captured(place):
                account(each, report, turn.id)
        elif waiting:
            report.outcome(PLANE, OutcomeKind.DEFERRED, messages=waiting, of=wanted)

    async def compacting(self, compaction: Compaction) -> None:
        """Return once the words of the session are durable; before that, capture those that wait.

        Raises:
            MessagesLost: turns of the session were lost, because the store could not take them.
        """
        sight = Visibility.of_compaction(compaction, self._home)
        await self._queue()
        for place in self._contexts.waiting():
            if _covers(sight, place):
                await self._capture(place)
        if lost := {place for place in self._lost if _covers(sight, place)}:
            self._lost -= lost
            raise MessagesLost("turns of this session could not be stored earlier")

    async def flush(self) -> None:
        """Capture the turns that this process has queued."""
        await self._queue()
        for place in self._contexts.waiting():
            await self._capture(place)

    def _keep(self, turn: _Committed) -> None:
        """Keep a turn until it is queued; the oldest one gives way if the store takes none."""
        self._unqueued.append(turn)
        if len(self._unqueued) > MOST_UNQUEUED:
            self._lost.add(self._unqueued.popleft().place)
            self._report.event("memory_turns_lost", turns=1)

    async def _queue(self) -> None:
        """Queue the turns that are kept.

        Raises:
            StoreError: the store cannot take them; they stay.
        """
        while self._unqueued:
            first = self._unqueued[0]
            if not await self._serve(first.put):
                self._contexts.erased(first.place, first.turn)
            # Another call may have queued it, too, which changes nothing.
            if self._unqueued and self._unqueued[0] is first:
                self._unqueued.popleft()

    async def _capture(self, place: QueuedSession) -> None:
        """Capture a session outside its turns."""
        for each in await self._captured(place):
            account(each, self._report)

    async def _captured(self, place: QueuedSession) -> list[CaptureReport]:
        self._contexts.captured(place)
        limit = self._settings.min_turn_messages // 2
        return await self._serve(lambda memory: _captured(memory, place, limit), wrote=True)

    async def _watch(self) -> None:
        while not self._ending.is_set():
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - the report says so, and the next round goes on
                self._report.event("memory_capture_failed", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), WATCH_SECONDS)

    async def _round(self) -> None:
        """Capture the sessions that are due, until this process ends."""
        await self._queue()
        self._seen.clear()
        for place in await self._due():
            if self._ending.is_set():
                return
            await self._capture(place)

    async def _due(self) -> list[QueuedSession]:
        """Return the sessions that are due and that the present round has not seen."""
        due = await self._serve(lambda memory: _due(memory, self._begun))
        fresh = [place for place in due if place not in self._seen]
        self._seen.update(fresh)
        return fresh


def _place_of(turn: Turn, home: Home) -> QueuedSession | None:
    """Return the session of a turn whose user may write memories, or `None`."""
    sight = Visibility.of_turn(turn, home)
    store = default_store(sight.trust)
    if store is None or not sight.own(turn.when).view.stores:
        return None
    return QueuedSession(owner=sight.owner, session=sight.session, project=sight.place, agent=sight.agent, store=store)


def _covers(sight: Visibility, place: QueuedSession) -> bool:
    """Return whether a session is that of a caller, with at most the caller's trust."""
    there = (place.owner, place.session, place.project, place.agent)
    return (sight.owner, sight.session, sight.place, sight.agent) == there and place.store in sight.stores


def _due(memory: "LocalMemory", begun: datetime) -> list[QueuedSession]:
    memory.operations.turns.tell_parked()
    return memory.operations.turns.due(begun)


def _captured(memory: "LocalMemory", place: QueuedSession, limit: int) -> list[CaptureReport]:
    found = memory.operations.turns.capture(place, limit=limit)
    for each in (item for report in found for item in report.items):
        memory.trace("memory_capture", outcome=each.outcome, reason=each.reason, memory=each.id)
    return found


def utterances(turn: Turn, answer: Answer) -> tuple[Utterance, ...]:
    """Return the texts of a turn: its prompt, which may be captured, and its answer as context.

    A turn that a tool has caused is context, because no person said its prompt.
    """
    is_machine = not MACHINES.isdisjoint({turn.actors.speaker_kind, turn.actors.trigger})
    speaker = (turn.actors.speaker or "")[:LONGEST]
    prompt = Utterance(text=turn.prompt, turn=turn.id, when=turn.when, speaker=speaker, is_context=is_machine)
    reply = Utterance(text=answer.text[-LONGEST:], voice="assistant", turn=turn.id, when=answer.when, is_context=True)
    return prompt, reply


def tool_outcome(result: ToolResult) -> ToolOutcome:
    """Return how a tool ended, with the command and the paths that it was given."""
    return ToolOutcome(
        tool=result.tool,
        command=next(_given(result.arguments, _COMMANDS), ""),
        succeeded=result.outcome == "success",
        files=tuple(_given(result.arguments, _PATHS)),
        external=result.external,
    )


def external_text(turn: Turn, result: ToolResult) -> Utterance | None:
    """Return the external text that a tool gave, or `None`."""
    if not result.external or not isinstance(result.output, str):
        return None
    return Utterance(text=result.output[:LONGEST], voice="tool", turn=turn.id, external=True, is_context=True)


def _given(arguments: Mapping[str, object], names: tuple[str, ...]) -> Iterator[str]:
    found = (arguments.get(name) for name in names)
    return (each for each in found if isinstance(each, str) and 0 < len(each) <= _LONGEST_ARGUMENT)


def account(found: CaptureReport, report: Report, turn: str = "") -> None:
    """Report each gate's reason, each outcome, the numbers of redacted secrets by kind, and the spend of models.

    The receipts of other turns are closed, so the event `memory_captured` reports the memories from them.

    Args:
        found: the capture.
        report: takes it.
        turn: the turn in which it was made, if any.
    """
    for item in found.items:
        _item(item, report)
    for each in found.redacted:
        report.decision("privacy", "redacted", f"{each.kind}:{each.count}")
    if found.fallback is not None:
        report.decision("capture", "rules", _code(found.fallback))
    if found.model_calls:
        report.event("memory_capture_spend", calls=found.model_calls, tokens=found.model_tokens)
    if others := [each for each in found.turns if each != turn]:
        _of_other_turns(
            others, attrs.evolve(found, items=tuple(each for each in found.items if each.turn != turn)), report
        )


def _of_other_turns(turns: Sequence[str], found: CaptureReport, report: Report) -> None:
    items = found.items
    report.event(
        "memory_captured",
        turns=[Personal(value=each) for each in turns],
        outcomes=[item.outcome for item in items],
        memories=[item.id for item in items if item.id],
        reasons=[_code(item.reason) for item in items if item.reason],
        **({} if found.fallback is None else {"fallback": _code(found.fallback)}),
    )


def _item(item: CapturedItem, report: Report) -> None:
    gate, _, reason = item.reason.partition(": ")
    if reason:
        report.decision(gate, item.outcome, reason)
    facts: dict[str, object] = {"type": item.kind, "source": "auto_capture"}
    if item.id:
        facts |= {"memory": item.id}
    if item.outcome in {"gated", "failed"}:
        facts |= {"reason": _code(item.reason)}
    report.outcome(PLANE, _KINDS[item.outcome], **facts)


def _code(reason: str) -> str:
    """Return a reason of two parts without the space between them."""
    return reason.replace(": ", ":")
