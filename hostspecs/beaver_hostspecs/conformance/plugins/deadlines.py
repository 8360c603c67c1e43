"""Deadlines and cancellation: the plugin ends when its call is cancelled, and works for the next turn."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import Driven, started, within
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.conformance.plugins.interruption import Stepped, interrupt
from beaver_hostspecs.conformance.plugins.scenes import MOST_POINTS, QUESTION, demand, teach
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
