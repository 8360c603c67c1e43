"""Deadlines and cancellation: the plugin ends when its call is cancelled, and works for the next turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import (
    MOST_POINTS,
    QUESTION,
    Driven,
    Ended,
    contained,
    demand,
    started,
    teach,
    within,
)
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.turns import RESULTS
from beaver_hostspecs.testing import RecordingReport, make_answer, make_compaction
from beaver_hostspecs.turns import DropReason, Trust, Turn

LONGEST_BLOCK = 1.0
"""Seconds that a plugin must not hold the event loop for; a busy machine may hold it for less by itself."""

TURN_HOOKS = ("before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped", "before_compaction")
"""The hooks of a running session; the host calls them while turns go on."""

REST = {
    "result": RESULTS[0], "answer": make_answer(), "reason": DropReason.FAILED,
    "compaction": make_compaction(trust=Trust.FULL),
}  # fmt: skip
"""What these hooks get besides the turn and the report."""

PROMPT = 2.0
"""Seconds within which a cancelled call must end."""


def _begin(driven: Driven, hook: str, turn: Turn, report: RecordingReport) -> Coroutine[Any, Any, object] | None:
    return driven.coroutine(hook, turn=turn, report=report, **REST)


def _cancelled(hook: str) -> Callable[[PluginHarness], Awaitable[None]]:
    async def run(harness: PluginHarness) -> None:
        await harness.open()
        async with started(harness) as driven:
            await teach(harness, driven, "Ardea")
            for point in range(1, MOST_POINTS + 1):
                reached = await _cancelled_at(driven, hook, point)
                await driven.run(f"{QUESTION} The next one.")
                if not reached:
                    break

    return run


async def _cancelled_at(driven: Driven, hook: str, point: int) -> bool:
    turn = driven.turn_of(f"{QUESTION} It is cancelled.")
    if hook not in {"before_prompt", "before_compaction"}:
        await driven.before(turn)
    running = _begin(driven, hook, turn, driven.report(driven.deadline(hook)))
    if running is None:
        return False
    return await interrupt(running, point, f"`{hook}`", seconds=driven.deadline(hook))


async def _in_time(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await _each_hook_in_time(driven)
        await harness.trouble()
        await _each_hook_in_time(driven)


async def _each_hook_in_time(driven: Driven) -> None:
    for hook in TURN_HOOKS:
        turn = driven.turn_of(f"{QUESTION} In {hook}.")
        running = _begin(driven, hook, turn, driven.report(driven.deadline(hook)))
        if running is not None:
            timed = Stepped(running)
            await within(driven.deadline(hook), timed, f"`{hook}`")
            demand(timed.longest < LONGEST_BLOCK, f"`{hook}` held the event loop for {timed.longest:.1f} seconds")


async def _no_time_left(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await teach(harness, driven, "Ardea")
        for hook in TURN_HOOKS:
            for remaining in (0.0, 1e-6, 0.01):
                turn = driven.turn_of(f"{QUESTION} With {remaining} seconds.")
                running = _begin(driven, hook, turn, driven.report(remaining))
                if running is not None:
                    await within(driven.deadline(hook), running, f"`{hook}` with {remaining:g} seconds left")
        await driven.run(QUESTION)


CASES: tuple[Case[PluginHarness], ...] = (
    *(
        Case(
            name=f"cancelled in {hook}",
            shows="Cancelled at any of its awaits, it ends at once as cancelled, and the next turn works.",
            run=_cancelled(hook),
        )
        for hook in TURN_HOOKS
    ),
    Case(
        name="keeps its deadlines",
        shows="Each hook ends in time and holds the event loop for less than a second at once, also in trouble.",
        run=_in_time,
    ),
    Case(
        name="no time left",
        shows="A report that says that no time is left ends no hook badly.",
        run=_no_time_left,
    ),
)


class Stepped:
    """Awaits a coroutine, step by step.

    Args:
        running: the call; it has not begun.
        suspended: called each time that it is about to wait, with the count so far.

    Attributes:
        longest: the seconds of its longest step, during which it held the event loop.
    """

    def __init__(self, running: Coroutine[Any, Any, object], suspended: Callable[[int], object] = bool) -> None:
        self.longest = 0.0
        self._running = running
        self._suspended = suspended

    def __await__(self) -> Generator[Any, Any, object]:
        resume, times = partial(self._running.send, None), 0
        while True:
            begun = time.monotonic()
            try:
                waited_for = resume()
            except StopIteration as stop:
                return stop.value
            finally:
                self.longest = max(self.longest, time.monotonic() - begun)
            times += 1
            self._suspended(times)
            try:
                resume = partial(self._running.send, (yield waited_for))
            except BaseException as error:  # noqa: BLE001 - passed on to the coroutine
                resume = partial(self._running.throw, error)


async def interrupt(running: Coroutine[Any, Any, object], at: int, what: str, *, seconds: float) -> bool:
    """Cancel a call of `seconds` when it waits for the `at`-th time; return whether it came that far.

    Raises:
        AssertionError: it did not end soon, or not as cancelled, or raised something else.
    """
    reached = asyncio.Event()

    def cancel(times: int) -> None:
        if times == at:
            reached.set()
            # From within the task: this cancels the awaited call, as a cancellation from outside does.
            task.cancel()

    task = asyncio.ensure_future(contained(Stepped(running, cancel), what))
    try:
        await asyncio.wait([task], timeout=seconds + PROMPT)
        _judge(task, what, reached=reached.is_set())
    finally:
        task.cancel()
    return reached.is_set()


def _judge(task: "asyncio.Future[object]", what: str, *, reached: bool) -> None:
    if not task.done():
        raise AssertionError(f"{what} is not over {PROMPT:g} seconds after it was cancelled")
    if task.cancelled():
        return
    ended = task.exception()
    error = ended.error if isinstance(ended, Ended) else ended
    if error is not None:
        raise AssertionError(f"{what} raised {type(error).__name__} when it was cancelled: {error}") from error
    if reached:
        raise AssertionError(f"{what} swallowed its cancellation and went on")
