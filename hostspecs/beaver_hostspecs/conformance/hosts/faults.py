"""Plugins that fail: the user's answer is the same as without memory, and the host reports the failure."""

from collections.abc import Awaitable, Callable
from itertools import cycle

from beaver_hostspecs.conformance.cases import Case, require
from beaver_hostspecs.conformance.harness import Ask, HostHarness, Way
from beaver_hostspecs.conformance.hosts.scenes import ANSWER, demand, fails, recalled, same, ways, with_tool
from beaver_hostspecs.conformance.probes import Probe
from beaver_hostspecs.plugins import Deadlines, PluginInfo
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin

SOON = 0.05
HOOKS = ("before_prompt", "on_tool_result", "after_prompt")
KINDS = {
    "crashes": (Fault.RAISE, Fault.BASE_EXCEPTION, Fault.SYSTEM_EXIT, Fault.RAISE_CANCELLED, Fault.CANCEL_ITSELF),
    "hangs": (Fault.AWAIT_FOREVER, Fault.SWALLOW_CANCEL),
    "answers garbage": (Fault.GARBAGE, Fault.SUBCLASS_GARBAGE, Fault.HUGE),
}


def _faulty(fault: Fault, hook: str) -> FaultPlugin:
    deadlines = Deadlines(before_prompt=SOON, on_tool_result=SOON, after_prompt=SOON, on_turn_dropped=SOON)
    return FaultPlugin(fault, hook, info=PluginInfo(version="1.0", contract="1.0", deadlines=deadlines))


def _harmless(hook: str, faults: tuple[Fault, ...]) -> Callable[[HostHarness], Awaitable[None]]:
    async def run(harness: HostHarness) -> None:
        tried = list(zip(faults, cycle(ways(harness.card)), strict=False))
        plain = {way: await _without_memory(harness, way) for way in dict.fromkeys(way for _, way in tried)}
        unseen = [
            fault
            for fault, way in tried
            if not await _costs_nothing(harness, _faulty(fault, hook), with_tool(way=way), plain[way])
        ]
        require(harness.card, "keeps_health")
        same([], unseen, f"the faults in {hook} that no health names")

    return run


async def _without_memory(harness: HostHarness, way: Way) -> str:
    if not harness.card.plain:
        return ANSWER
    await harness.open_plain()
    answer = await harness.run(with_tool(way=way))
    await harness.close()
    return answer


async def _costs_nothing(harness: HostHarness, faulty: FaultPlugin, ask: Ask, plain: str) -> bool:
    """Demand that a fault affects only its plugin; return whether the host's health names the plugin."""
    probe, fault, hook = Probe(), faulty.fault, faulty.hook
    await harness.open({"probe": probe, "faulty": faulty})
    try:
        where = f"with a plugin that does {fault} in {hook} ({ask.way})"
        same(plain, await harness.run(ask), f"the answer {where}")
        demand(recalled(harness.calls[-1]), f"the other plugin's references are lost {where}")
        await harness.settle()
        same([ANSWER], [each.text for each in probe.answers], f"what the other plugin learned {where}")
        # The answer of a hook without one, and a contribution too large to show, may pass without a report.
        counts = fault is not Fault.HUGE and (hook == "before_prompt" or "garbage" not in fault)
        return not (counts and faulty.calls_of(hook)) or "faulty" in await harness.unwell()
    finally:
        await faulty.release()
        await harness.close()


async def _fail_closed(harness: HostHarness) -> None:
    probe, faulty = Probe(), _faulty(Fault.RAISE, "before_prompt")
    await harness.open({"probe": probe, "faulty": faulty}, fail_closed=("faulty",))
    asked = ways(harness.card)
    for way in asked:
        error = await fails(harness, with_tool(f"Answered {way}?", way=way))
        same((), tuple(harness.calls), "what the model was asked though a fail-closed plugin failed")
        demand(_is_clear(error), f"the plugin's error does not come out: {type(error).__name__}: {error}")
    await harness.settle()
    same((), probe.answers, "what was learned")
    same([("on_turn_dropped",)] * len(asked), list(probe.endings().values()), "how the turns ended")


def _is_clear(error: BaseException | None) -> bool:
    """Whether this is the error of the plugin, or was raised from it."""
    while error is not None:
        if isinstance(error, FaultError) or FaultError.__name__ in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


CASES: tuple[Case[HostHarness], ...] = (
    *(
        Case(
            name=f"plugin {kind} in {hook}",
            shows="The answer is that of a run without memory, no other plugin misses anything, and health names it.",
            flags=("keeps_health",),
            run=_harmless(hook, faults),
        )
        for kind, faults in KINDS.items()
        for hook in HOOKS
    ),
    Case(
        name="fail-closed plugin fails",
        shows="Its one error reaches the caller, the model is not asked, and the turn is dropped.",
        run=_fail_closed,
    ),
)
