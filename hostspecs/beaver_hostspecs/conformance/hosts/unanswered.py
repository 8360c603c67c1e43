"""Turns without an answer: plugins learn nothing from them, and get `on_turn_dropped`."""

import asyncio
from contextlib import suppress

from beaver_hostspecs.conformance.cases import Case, require
from beaver_hostspecs.conformance.harness import ECHO, Ask, CallTool, Fail, Hang, HostHarness
from beaver_hostspecs.conformance.hosts.scenes import ANSWER, PROMPT, demand, fails, same, simple, with_probe, with_tool
from beaver_hostspecs.conformance.probes import Probe
from beaver_hostspecs.turns import DropReason

SOON = 10.0
"""Seconds within which a cancelled turn must end."""

LONG = "One piece after the other, so that there is something to break off. " * 20


async def _model_error(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(Fail(),)))
    await _dropped(harness, probe)


async def _error_after_tool(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(CallTool(tool=ECHO, arguments={"text": "once"}), Fail())))
    await _dropped(harness, probe)


async def _stream_error(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    await fails(harness, Ask(prompt=PROMPT, steps=(Fail(),), way="stream"))
    await _dropped(harness, probe)


async def _dropped(harness: HostHarness, probe: Probe) -> None:
    reasons = await _goes_on(harness, probe)
    require(harness.card, "sees_errors")
    same((DropReason.FAILED,), reasons, "why the turn was dropped")


async def _broken_off(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    for ask in (simple("One.", LONG, way="break_off"), with_tool("Two.", LONG, way="break_off", session="session-2")):
        seen = await harness.run(ask)
        demand(len(seen) < len(LONG), "the harness did not break off: it consumed the whole stream")
    reasons = await _goes_on(harness, probe, turns=2)
    require(harness.card, "sees_cancellation")
    same(2, len(reasons), "how many turns were dropped")
    demand({DropReason.CANCELLED, DropReason.ABANDONED}.issuperset(reasons), f"they were dropped as {reasons}")


async def _cancelled(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    task = asyncio.create_task(harness.run(Ask(prompt=PROMPT, steps=(Hang(),))))
    await _until_asked(harness, task)
    task.cancel()
    # Not awaited: a host that ignores the cancellation would wait for the case's own, and take that for the first one.
    await asyncio.wait([task], timeout=SOON)
    demand(task.done(), f"the turn goes on {SOON:g} seconds after it was cancelled")
    demand(task.cancelled(), "the cancellation of the caller was swallowed")
    reasons = await _goes_on(harness, probe)
    require(harness.card, "sees_cancellation")
    same((DropReason.CANCELLED,), reasons, "why the turn was dropped")


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
    demand(DropReason.CANCELLED not in probe.reasons, "it was dropped as cancelled")


async def _until_asked(harness: HostHarness, task: "asyncio.Task[str]") -> None:
    while not harness.calls:
        demand(not task.done(), "the turn ended before the model was asked")
        await asyncio.sleep(0.005)


async def _goes_on(harness: HostHarness, probe: Probe, turns: int = 1) -> tuple[DropReason, ...]:
    """Demand that turns without an answer teach nothing, and that the next turn works.

    Return why they were dropped, as far as the host reported it before the next turn.
    """
    await harness.settle()
    same((), probe.answers, "what was learned of a turn without an answer")
    reasons = probe.reasons
    demand(len(reasons) <= turns, f"of {turns} turns {len(reasons)} were dropped")
    same(ANSWER, await harness.run(simple("And now?", session="session-next")), "the answer to the next prompt")
    await harness.settle()
    same([ANSWER], [each.text for each in probe.answers], "what was learned of the next turn")
    return reasons


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
        shows="An answer that the caller stopped reading is not learned from.",
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
