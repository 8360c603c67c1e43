"""Turns that are not answered: nothing is learned from them, and plugins are told that they ended."""

import asyncio
from contextlib import suppress

from beaver_hostspecs.conformance.asking import ECHO, Ask, CallTool, Fail, Hang, Say
from beaver_hostspecs.conformance.examining import Case, require
from beaver_hostspecs.conformance.harness import HostHarness
from beaver_hostspecs.conformance.hosts.scenes import ANSWER, PROMPT, demand, fails, same, simple, with_probe
from beaver_hostspecs.conformance.probes import Probe
from beaver_hostspecs.turns import DropReason

SOON = 10.0
"""Seconds within which a cancelled turn is to be over."""

LONG = "One piece after the other, so that there is something to break off. " * 20


async def _model_error(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(Fail(),)))
    await _goes_on(harness, probe)
    require(harness.card, "sees_errors")
    same((DropReason.FAILED,), probe.reasons, "why the turn was dropped")


async def _error_after_tool(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(CallTool(tool=ECHO, arguments={"text": "once"}), Fail())))
    await _goes_on(harness, probe)
    require(harness.card, "sees_errors")
    same((DropReason.FAILED,), probe.reasons, "why the turn was dropped")


async def _stream_error(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(Fail(),), way="stream"))
    await _goes_on(harness, probe)
    require(harness.card, "sees_errors")
    same((DropReason.FAILED,), probe.reasons, "why the turn was dropped")


async def _broken_off(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    seen = await harness.run(Ask(prompt=PROMPT, steps=(Say(text=LONG),), way="break_off"))
    demand(len(seen) < len(LONG), "the harness did not break off: it consumed the whole stream")
    await _goes_on(harness, probe)
    require(harness.card, "sees_cancellation")
    same(1, len(probe.reasons), "how many turns were dropped")
    demand(probe.reasons[0] in {DropReason.CANCELLED, DropReason.ABANDONED}, f"it was dropped as {probe.reasons[0]}")


async def _cancelled(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    task = asyncio.create_task(harness.run(Ask(prompt=PROMPT, steps=(Hang(),))))
    await _until_asked(harness, task)
    task.cancel()
    # Not awaited: a host that goes on would wait for the case's own end, and take it for the one that it passed over.
    await asyncio.wait([task], timeout=SOON)
    demand(task.done(), f"the turn goes on {SOON:g} seconds after it was cancelled")
    demand(task.cancelled(), "the cancellation of the caller was swallowed")
    await _goes_on(harness, probe)
    require(harness.card, "sees_cancellation")
    same((DropReason.CANCELLED,), probe.reasons, "why the turn was dropped")


async def _blocked(harness: HostHarness) -> None:
    require(harness.card, "sees_blocks")
    probe = await with_probe(harness)
    seen = ""
    with suppress(Exception):  # some frameworks raise, others answer something else
        seen = await harness.run(simple(answer="A secret plan.", blocked=True))
    demand("A secret plan." not in seen, "the harness did not block the answer")
    await harness.settle()
    learned = [each.text for each in probe.answers if "A secret plan." in each.text]
    same([], learned, "what was learned of a blocked answer")
    same(1, sum(map(len, probe.endings().values())), "how often the turn's end was told")


async def _until_asked(harness: HostHarness, task: "asyncio.Task[str]") -> None:
    while not harness.calls:
        demand(not task.done(), "the turn ended before the model was asked")
        await asyncio.sleep(0.005)


async def _goes_on(harness: HostHarness, probe: Probe) -> None:
    """Demand what is demanded after every turn that was not answered: nothing learned, and the next one works."""
    await harness.settle()
    same((), probe.answers, "what was learned of a turn without an answer")
    before = len(probe.reasons)
    demand(before <= 1, f"one turn was dropped {before} times")
    same(ANSWER, await harness.run(simple("And now?", session="session-next")), "the answer to the next prompt")
    await harness.settle()
    same([ANSWER], [each.text for each in probe.answers], "what was learned of the next turn")


CASES: tuple[Case[HostHarness], ...] = (
    Case(name="model error", shows="A model that fails drops the turn.", flags=("sees_errors",), run=_model_error),
    Case(
        name="model error after a tool",
        shows="So it does after a tool call.",
        flags=("sees_errors",),
        run=_error_after_tool,
    ),
    Case(
        name="model error in a stream",
        shows="So it does while it streams.",
        flags=("streaming", "sees_errors"),
        run=_stream_error,
    ),
    Case(
        name="consumer breaks off",
        shows="An answer that nobody waited for is not learned from.",
        flags=("streaming", "sees_cancellation"),
        run=_broken_off,
    ),
    Case(
        name="cancelled",
        shows="A cancelled turn is dropped, and the cancellation reaches the caller.",
        flags=("sees_cancellation",),
        run=_cancelled,
    ),
    Case(
        name="guardrail",
        shows="An answer that a guardrail blocks is not learned from.",
        flags=("sees_blocks",),
        run=_blocked,
    ),
)
