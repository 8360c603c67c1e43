"""Captures from the turns of a host, in the background: the user never waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from beaver_hooks_local.capture.account import account
from beaver_hooks_local.capture.session_buffer import Batch, SessionBuffer
from beaver_hooks_local.capture.turn_texts import external_text, tool_outcome, utterances
from beaver_hooks_local.errors import MessagesLost
from beaver_hooks_local.settings import CaptureSettings
from beaver_hooks_local.trust import default_store
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Answer, Clock, Compaction, Report, ToolResult, Turn
from beaver_memory.capture.rules import asks_to_remember
from beaver_memory.runtime.capture_records import CaptureReport, CaptureRequest

if TYPE_CHECKING:
    from beaver_hooks_local.memory import LocalMemory

IDLE_SECONDS = 60.0
"""After this silence the messages of a session are captured, however few."""


class Serve(Protocol):
    """Runs work with the open memory, off the event loop."""

    def __call__(
        self, work: "Callable[[LocalMemory], CaptureReport]", /, *, wrote: bool = False
    ) -> Awaitable[CaptureReport]:
        """Return the result of `work`."""


class TurnCapture:
    """Keeps the messages of each session, and captures them together. In the event loop only.

    Args:
        settings: of capture.
        serve: runs work with the open memory.
        clock: the source of time.
        report: for captures outside turns.
    """

    def __init__(self, settings: CaptureSettings, serve: Serve, clock: Clock, report: Report) -> None:
        self._settings, self._serve, self._clock, self._report = settings, serve, clock, report
        self._buffer = SessionBuffer()
        self._task: asyncio.Task[None] | None = None
        self._running: dict[asyncio.Future[None], Visibility] = {}

    def begin(self) -> None:
        """Begin to look for sessions that are silent."""
        if self._settings.enabled:
            self._task = asyncio.create_task(self._watch(), name="beaver-memory-capture")

    async def end(self) -> None:
        """Capture all that waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.flush()

    def tool(self, turn: Turn, result: ToolResult) -> None:
        """Keep how a tool ended; of a private result nothing is kept."""
        if self._settings.enabled and not result.private and (sight := _sight(turn)) is not None:
            self._buffer.tool(sight, tool_outcome(result), external_text(turn, result))

    def dropped(self, turn: Turn) -> None:
        """Forget how the tools of a turn without an answer ended. Its prompt was never kept."""
        self._buffer.drop_tools(Visibility.of_turn(turn))

    async def committed(self, turn: Turn, answer: Answer, report: Report) -> None:
        """Keep a turn, and capture the session once enough messages wait, or the user asks for it."""
        if not self._settings.enabled:
            return
        sight = _sight(turn)
        if sight is None:
            report.decision("capture", "skip", "trust")
            return
        waiting = self._buffer.turn(sight, utterances(turn, answer), turn.was_injected, now=self._clock.monotonic())
        if waiting >= self._settings.min_turn_messages or asks_to_remember(turn.prompt):
            await self._capture(self._buffer.take(sight), report)

    async def compacting(self, compaction: Compaction, report: Report) -> None:
        """Capture the messages of a session that wait, and return once they, and those being captured, are stored.

        Raises:
            MessagesLost: messages of the session could not be stored.
        """
        sight = Visibility.of_compaction(compaction)
        batch: Batch | None = None
        while (running := self._captures_of(sight)) or (batch := next(self._buffer.covered(sight), None)):
            await (asyncio.wait(running) if running else self._capture(batch, report))
        if self._buffer.forgive(sight):
            raise MessagesLost("messages of this session could not be stored earlier")

    async def flush(self, before: float = float("inf")) -> None:
        """Capture the messages of the sessions that were silent since a moment; of all sessions unless given."""
        # One after the other: a batch is either in the buffer or being captured, which a compaction looks at.
        for batch in self._buffer.idle(before):
            await self._capture(batch, self._report)

    def _captures_of(self, sight: Visibility) -> list[asyncio.Future[None]]:
        """Return the ends of the captures that run in the sessions that a sight covers."""
        return [ended for ended, each in self._running.items() if sight.covers(each)]

    async def _capture(self, batch: Batch | None, report: Report) -> None:
        if batch is None:
            return
        ended = asyncio.get_running_loop().create_future()
        self._running[ended] = batch.sight
        try:
            found = await self._serve(lambda memory: _captured(memory, batch), wrote=True)
            account(found, report)
            if any(each.outcome == "failed" for each in found.items):
                self._buffer.lose(batch.sight)
        except BaseException:
            self._buffer.lose(batch.sight)
            raise
        finally:
            del self._running[ended]
            ended.set_result(None)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS / 2)
            try:
                await self.flush(self._clock.monotonic() - IDLE_SECONDS)
            except Exception as error:  # noqa: BLE001 - the report says so, and the next round goes on
                self._report.event("memory_capture_failed", error=type(error).__name__)


def _sight(turn: Turn) -> Visibility | None:
    """Return the sight of a turn whose user may write memories, or `None`."""
    sight = Visibility.of_turn(turn)
    return sight if default_store(sight.trust) is not None and sight.own(turn.when).stores else None


def _captured(memory: "LocalMemory", batch: Batch) -> CaptureReport:
    store = default_store(batch.sight.trust)
    if store is None:
        return CaptureReport()
    own = batch.sight.own(memory.clock.now())
    request = CaptureRequest(said=batch.said, outcomes=batch.outcomes, own=own, store=store, paths=batch.paths)
    found = memory.operations.capture(request, batch.was_injected)
    for each in found.items:
        memory.trace("memory_capture", outcome=each.outcome, reason=each.reason, memory=each.id)
    return found
