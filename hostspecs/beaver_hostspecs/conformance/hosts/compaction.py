"""Compactions: plugins hear of them after all that the session's turns said, and cost no more than their deadline."""

import asyncio

from beaver_hostspecs.conformance.cases import Case, require
from beaver_hostspecs.conformance.harness import HostHarness
from beaver_hostspecs.conformance.hosts.scenes import ANSWER, same, simple
from beaver_hostspecs.conformance.probes import Probe
from beaver_hostspecs.plugins import Deadlines, PluginInfo
from beaver_hostspecs.testing import Call, Fault, FaultPlugin
from beaver_hostspecs.turns import Compaction

HOOK = "before_compaction"
SOON = 0.05


class _SlowProbe(Probe):
    """A probe that takes a while to learn from an answer, and lists the ends of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []

    async def answer(self, call: Call) -> object:
        if call.hook == "after_prompt":
            await asyncio.sleep(SOON)
        answer = await super().answer(call)
        self.ended.append(call.hook)
        return answer


async def _announced(harness: HostHarness) -> None:
    require(harness.card, "announces_compaction")
    probe = _SlowProbe()
    await harness.open({"probe": probe})
    await harness.run(simple())
    await harness.compact("session-1", "user-1")
    same(("after_prompt", HOOK), tuple(each for each in probe.ended if each in {"after_prompt", HOOK}), "the hooks")
    compaction = probe.calls_of(HOOK)[0].arguments["compaction"]
    assert isinstance(compaction, Compaction)  # noqa: S101 - the host makes it by the contract
    same("session-1", compaction.session, "the session")
    if harness.card.has_user_id:
        same("user-1", compaction.user, "the user")


async def _hangs(harness: HostHarness) -> None:
    require(harness.card, "announces_compaction")
    info = PluginInfo(version="1.0", contract="1.0", deadlines=Deadlines(before_compaction=SOON))
    probe, faulty = Probe(), FaultPlugin(Fault.AWAIT_FOREVER, HOOK, info=info)
    await harness.open({"faulty": faulty, "probe": probe}, fail_closed=("faulty",))
    await harness.run(simple())
    await harness.compact("session-1", "user-1")
    await faulty.release()
    same(1, len(probe.calls_of(HOOK)), "how often the other plugin was asked")
    same(ANSWER, await harness.run(simple("And now?")), "the answer to the next prompt")
    require(harness.card, "keeps_health")
    same({"faulty"}, set(await harness.unwell()), "the plugins that are unwell")


CASES: tuple[Case[HostHarness], ...] = (
    Case(
        name="compaction",
        shows="Before the context of a session is shortened, plugins are asked, after all that its turns said.",
        flags=("announces_compaction",),
        run=_announced,
    ),
    Case(
        name=f"plugin hangs in {HOOK}",
        shows="It costs its deadline: another plugin is asked, and the session goes on. Health names the plugin.",
        flags=("announces_compaction", "keeps_health"),
        run=_hangs,
    ),
)
