"""Compactions: a host announces that it shortens a session's context, and learns which plugins have stored it."""

import asyncio

import pytest

from beaver_hooks import CompactionReport, SyncHost
from beaver_hostspecs import Compaction, Deadlines, HostNotOpen, InvalidTurn, PluginInfo, Scope, hookimpl
from beaver_hostspecs.testing import Fault, FaultPlugin, RecordingPlugin

pytestmark = pytest.mark.usefixtures("complaints")

SOON = 0.05


class Gated(RecordingPlugin):
    """Waits in one hook until its gate is open, and lists the ends of its calls."""

    def __init__(self, hook, **deadlines):
        super().__init__(info=PluginInfo(version="0", contract="1.0", deadlines=Deadlines(**deadlines)))
        self.hook, self.gate, self.ended = hook, asyncio.Event(), []

    async def answer(self, call):
        if call.hook == self.hook:
            await self.gate.wait()
        self.ended.append(call.hook)
        return await super().answer(call)


class Reporting(RecordingPlugin):
    """Reports in `before_compaction`."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    async def answer(self, call):
        if call.hook == "before_compaction":
            self.tell(call.arguments["report"])
        return await super().answer(call)


class Hookless:
    """A plugin without `before_compaction`, whose `after_prompt` waits until its gate is open."""

    def __init__(self):
        self.gate, self.begun = asyncio.Event(), asyncio.Event()

    @hookimpl
    def describe(self):
        return PluginInfo(version="0", contract="1.0", deadlines=Deadlines(after_prompt=30.0))

    @hookimpl
    async def after_prompt(self):
        self.begun.set()
        await self.gate.wait()


async def say(host, session="s", **fields):
    async with host.turn("My sister lives in Lisbon.", session=session, **fields) as turn:
        await turn.commit("Noted.")


def facts(sink):
    """Return the facts of the events about compactions, without times."""
    return [
        (each.plugin, {name: fact for name, fact in each.facts.items() if name != "milliseconds"})
        for each in sink.named("compaction_prepared")
    ]


async def test_what_a_plugin_gets(make_host, clock):
    """The record has the session, the user, the scope, the trust, the reason and the time; a bare one is public."""
    plugin, scope = RecordingPlugin(), Scope(project="p")
    async with make_host({"p": plugin}, clock=clock) as host:
        await host.before_compaction(session="s", user="ann", trust="inner", scope=scope, why="requested")
        await host.before_compaction(session="s")

    said = [call.arguments["compaction"] for call in plugin.calls_of("before_compaction")]
    full = {"conversation": "s", "user": "ann", "trust": "inner", "scope": scope, "why": "requested"}
    bare = {"trust": "public", "why": "automatic"}
    assert [Compaction(session="s", when=clock.now(), **each) for each in (full, bare)] == said


async def test_committed_turns_reach_a_plugin_first(make_host):
    """The hook is called after the queued calls of the session, and does not wait for another session's."""
    plugin = Gated("after_prompt")
    async with make_host({"p": plugin}) as host:
        await say(host)
        asked = asyncio.create_task(host.before_compaction(session="s"))
        other = await host.before_compaction(session="other")
        assert ["start", "before_prompt", "before_compaction"] == plugin.ended
        plugin.gate.set()
        report = await asked

    assert [CompactionReport(confirmed=("p",))] * 2 == [other, report]
    assert ["after_prompt", "before_compaction", "stop"] == plugin.ended[3:]


async def test_plugins_are_asked_side_by_side(make_host):
    """A plugin that waits for the other one's call gets it."""
    first, second = Gated("before_compaction"), RecordingPlugin()
    async with make_host({"first": first, "second": second}) as host:
        asked = asyncio.create_task(host.before_compaction(session="s"))
        await second.wait_for("before_compaction")
        first.gate.set()

        assert CompactionReport(confirmed=("first", "second")) == await asked


async def test_a_confirmation_is_one_event(make_host, sink):
    """The plugin's reports in the call are facts of one event, and there is neither a turn nor a receipt."""

    def tell(report):
        report.outcome("local", "stored")
        report.decision("write", "gated", "chatter")

    async with make_host({"p": Reporting(tell)}) as host:
        report = await host.before_compaction(session="s")

    expected = {"confirmed": True, "why": None, "outcomes": ["local:stored"], "decisions": ["write:gated"]}
    assert (True, [("p", expected)], []) == (report.complete, facts(sink), sink.named("turn_committed"))


@pytest.mark.parametrize("tell", [lambda to: to.outcome("local", "failed"), lambda to: to.degraded("disk_full")])
async def test_a_plugin_that_reports_a_failure_has_not_confirmed(make_host, tell):
    """A plugin that returns but reports a failed write, or its trouble, counts as not confirmed."""
    async with make_host({"p": Reporting(tell)}) as host:
        report = await host.before_compaction(session="s")

    assert (CompactionReport(unconfirmed={"p": "reported"}), False) == (report, report.complete)


@pytest.mark.parametrize(
    ("fault", "category"),
    [
        (Fault.RAISE, "raised"),
        (Fault.SYSTEM_EXIT, "raised"),
        (Fault.RAISE_CANCELLED, "cancelled"),
        (Fault.AWAIT_FOREVER, "timeout"),
        (Fault.SWALLOW_CANCEL, "timeout"),
        (Fault.GARBAGE, "wrong_type"),
    ],
)
async def test_a_failing_plugin_costs_its_own_confirmation(make_host, sink, fault, category):
    """A plugin that fails is named with the category, audited and degraded; a fail-closed one raises nothing either."""
    info = PluginInfo(version="0", contract="1.0", deadlines=Deadlines(before_compaction=SOON))
    faulty, well = FaultPlugin(fault, "before_compaction", info=info), RecordingPlugin()
    async with make_host({"faulty": faulty, "well": well}, fail_closed=["faulty"]) as host:
        report = await host.before_compaction(session="s")
        health = host.health()["faulty"].faults
        await faulty.release()

    assert CompactionReport(confirmed=("well",), unconfirmed={"faulty": category}) == report
    assert {"before_compaction": category} == health
    assert [category] == [each.facts["category"] for each in sink.named("plugin_failed")]
    assert [("faulty", False), ("well", True)] == [(name, each["confirmed"]) for name, each in facts(sink)]


async def test_a_plugin_that_is_behind_is_not_called(make_host, sink):
    """Where queued calls outlast the longest background deadline, the hook is not called, and its health says so."""
    plugin = Gated("on_tool_result", on_tool_result=SOON, after_prompt=SOON, on_turn_dropped=SOON)
    async with make_host({"p": plugin}) as host:
        async with host.turn("Go.", session="s") as turn:
            for number in range(3):
                await turn.tool_result(tool="t", call_id=str(number))
            await turn.commit("Gone.")
        report = await host.before_compaction(session="s")
        health = host.health()["p"].faults

    assert CompactionReport(unconfirmed={"p": "behind"}) == report
    assert ("behind", ()) == (health["before_compaction"], plugin.calls_of("before_compaction"))
    assert [("p", {"confirmed": False, "why": "behind"})] == facts(sink)


@pytest.mark.parametrize(("settings", "fails"), [({}, True), ({"queue_limit": 1}, False)])
async def test_a_turn_that_was_missed(make_host, settings, fails):
    """A plugin that a turn never reached has not confirmed, though it returns; the next compaction starts anew."""
    fault = Fault.RAISE if fails else Fault.AWAIT_FOREVER
    plugin = FaultPlugin(fault, "after_prompt")
    async with make_host({"p": plugin}, settings) as host:
        await say(host)
        await say(host, session="s" if fails else "full")
        plugin.hook = ""
        await plugin.release()
        reports = [await host.before_compaction(session=each) for each in ("s", "full", "s", "full")]

    missed, confirmed = CompactionReport(unconfirmed={"p": "missed"}), CompactionReport(confirmed=("p",))
    assert ([missed, confirmed] if fails else [confirmed, missed]) + [confirmed] * 2 == reports


async def test_missed_turns_are_bounded(make_host, monkeypatch):
    """Of the sessions of which a plugin missed a turn, only the newest are kept."""
    monkeypatch.setattr("beaver_hooks.turns.background.MOST_MISSED", 1)
    async with make_host({"p": (plugin := FaultPlugin(Fault.RAISE, "after_prompt"))}) as host:
        for session in ("s", "t"):
            await say(host, session=session)
            await host.drain()
        plugin.hook = ""
        reports = [await host.before_compaction(session=each) for each in ("s", "t")]

    assert [CompactionReport(confirmed=("p",)), CompactionReport(unconfirmed={"p": "missed"})] == reports


async def test_a_plugin_without_the_hook(make_host, sink):
    """A plugin without the hook gets its turns and is not in the report, unless it is behind."""
    plugin = Hookless()
    async with make_host({"p": plugin}, {"deadline_cap_seconds": SOON}) as host:
        plugin.gate.set()
        await say(host)
        even = await host.before_compaction(session="s")
        plugin.gate.clear()
        for _ in range(3):
            await say(host)
        behind = await host.before_compaction(session="s")
        health = host.health()["p"].faults

    assert [CompactionReport(), CompactionReport(unconfirmed={"p": "behind"})] == [even, behind]
    assert "before_compaction" not in health
    assert [("p", {"confirmed": False, "why": "behind"})] == facts(sink)


async def test_memory_off(make_host, sink):
    """While memory is off for the session, no plugin is asked, and the report says so."""
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        await host.switch_memory(on=False, session="s", user="ann")
        reports = [await host.before_compaction(session="s", user=each) for each in ("ann", "bob")]

    assert [CompactionReport(memory_off=True), CompactionReport(confirmed=("p",))] == reports
    assert (1, (None, {"memory_off": True})) == (len(plugin.calls_of("before_compaction")), facts(sink)[0])


@pytest.mark.parametrize("fields", [{"session": " "}, {"user": ""}, {"trust": "mine"}, {"why": "x"}, {"prompt": "x"}])
async def test_invalid_fields(make_host, fields):
    """A blank id, an unknown trust or reason, and an unknown field are refused before a plugin is asked."""
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        with pytest.raises(InvalidTurn):
            await host.before_compaction(**{"session": "s", **fields})

    assert () == plugin.calls_of("before_compaction")


async def test_unregistered_meanwhile(make_host):
    """A plugin that is unregistered while its turns are awaited is not called."""
    plugin = Gated("after_prompt")
    async with make_host({"p": plugin}) as host:
        await say(host)
        asked = asyncio.create_task(host.before_compaction(session="s"))
        await plugin.wait_for("after_prompt")
        await host.unregister("p")

        assert CompactionReport(unconfirmed={"p": "unregistered"}) == await asked
    assert () == plugin.calls_of("before_compaction")


async def test_cancelled(make_host):
    """Cancelling the announcement cancels the hook, and is passed on at once."""
    plugin = Gated("before_compaction")
    async with make_host({"p": plugin}) as host:
        asked = asyncio.create_task(host.before_compaction(session="s"))
        await plugin.wait_for("before_compaction")
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    assert "before_compaction" not in plugin.ended


async def test_open_turns_stay_open(make_host):
    """A turn that is open while the context is shortened is committed later as usual."""
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        async with host.turn("Go.", session="s") as turn:
            await host.before_compaction(session="s")
            await turn.commit("Gone.")
        await host.drain()

    said = [call.hook for call in plugin.calls if "_" in call.hook and "provide" not in call.hook]
    assert ["before_prompt", "before_compaction", "after_prompt"] == said


def test_without_an_event_loop(make_host):
    """`SyncHost` announces compactions as `Host` does, and a closed host refuses."""
    with SyncHost(make_host({"p": RecordingPlugin()})) as host:
        report = host.before_compaction(session="s", user="ann", trust="full")

    assert CompactionReport(confirmed=("p",)) == report
    with pytest.raises(HostNotOpen):
        host.before_compaction(session="s")
