"""The parts of an open host together: deadlines, unregistering, closing, and who blocks the loop."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest
from unit.gated_plugin import Gated

from beaver_hooks import runtime as module
from beaver_hooks.audit.trail import Trail
from beaver_hooks.plugins import watchdog
from beaver_hooks.runtime import SWEEP_EVERY
from beaver_hostspecs import (
    Contribution,
    Deadlines,
    DropReason,
    HostNotOpen,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    hookimpl,
)
from beaver_hostspecs.testing import Fault, FaultPlugin, RecordingPlugin

pytestmark = pytest.mark.usefixtures("complaints")

SAFETY = 20.0
TURN_HOOKS = ("before_prompt", "on_tool_result", "after_prompt", "on_turn_dropped")


@pytest.fixture
def make_host(make_host, sink, clock):
    def make(settings=None, *, sinks=(), **plugins):
        return make_host(plugins, settings, sinks=[sink, *sinks], clock=clock)

    return make


def hooks_of(plugin):
    return [call.hook for call in plugin.calls if call.hook in {*TURN_HOOKS, "stop"}]


def facts(sink, name):
    return [(each.plugin, dict(each.facts)) for each in sink.named(name)]


# --- Deadlines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "settings", "expected"),
    [
        (None, {}, 5.0),
        (3.0, {}, 3.0),
        (90.0, {}, 60.0),
        (90.0, {"deadline_cap_seconds": 7.0}, 7.0),
        (None, {"default_deadline_seconds": 2.0}, 2.0),
        (None, {"default_deadline_seconds": 9.0, "deadline_cap_seconds": 7.0}, 7.0),
    ],
)
async def test_a_deadline_is_declared_or_the_default_and_capped(make_host, declared, settings, expected):
    """A deadline is the plugin's declared one, or the default of the settings, and never more than the cap."""
    plugin = Gated(before_prompt=declared)
    async with make_host(settings, p=plugin) as host:
        engine = host._running()
        (member,) = engine.registry.members()

        assert expected == engine.deadlines.seconds(member, "before_prompt")


async def test_the_cap_holds_while_a_turn_runs(make_host, sink):
    """The cap ends a call of a plugin that declares an hour."""
    plugin = Gated("before_prompt", before_prompt=3600.0)
    async with make_host({"deadline_cap_seconds": 0.02}, p=plugin) as host:
        await host.open_turn("hello", session="s")

    assert [("p", "timeout")] == [(name, each["category"]) for name, each in facts(sink, "plugin_failed")]


async def test_draining_waits_the_largest_deadline_of_the_background(make_host):
    """Closing waits for the most patient plugin; one that is unregistered is waited for by its own deadlines."""
    plugins = {"one": Gated(after_prompt=1.0, before_prompt=50.0), "two": Gated(on_turn_dropped=8.0)}
    async with make_host() as empty:
        nothing = empty._running().drain_seconds()
    async with make_host(**plugins) as host:
        engine = host._running()

        assert (0.0, 8.0, 5.0) == (nothing, engine.drain_seconds(), engine.drain_seconds(engine.registry.member("one")))


# --- Unregistering --------------------------------------------------------------------------------------------


async def test_an_unregistered_plugin_is_called_no_more(make_host, sink):
    """Open turns call no further hook of an unregistered plugin, it is stopped once, and other plugins go on."""
    gone, other = RecordingPlugin(), RecordingPlugin()
    async with make_host(gone=gone, other=other) as host:
        turn = await host.open_turn("hello", session="s")
        await host.unregister("gone")
        await turn.tool_result(tool="t", call_id="1")
        await turn.commit("bye")
        await host.drain()

    assert ["before_prompt", "stop"] == hooks_of(gone)
    assert ["before_prompt", "on_tool_result", "after_prompt", "stop"] == hooks_of(other)
    assert [("gone", {"lost": 0})] == facts(sink, "plugin_unregistered")


async def test_queued_work_of_an_unregistered_plugin_is_discarded(make_host, sink):
    """The running call is cancelled, the waiting ones are never made; all of them are counted and audited."""
    gone = Gated("on_tool_result")
    async with make_host(gone=gone) as host:
        turn = await host.open_turn("hello", session="s")
        for number in range(3):
            await turn.tool_result(tool="t", call_id=str(number))
        await turn.commit("bye")
        await gone.wait_for("on_tool_result")
        await host.unregister("gone")

        assert (0, 4, "committed") == (await host.drain(), turn.receipt.lost, turn.receipt.state)
    assert ["before_prompt", "on_tool_result", "stop"] == hooks_of(gone)
    assert (["on_tool_result"], [("gone", {"lost": 4})]) == (gone.cancelled, facts(sink, "plugin_unregistered"))


async def test_queued_work_is_drained_when_asked(make_host, sink):
    """Unregistering with `drain` stops the plugin after its last queued call, and loses no work."""
    gone = Gated("on_tool_result")
    async with make_host(gone=gone) as host:
        turn = await host.open_turn("hello", session="s")
        await turn.tool_result(tool="t", call_id="1")
        await turn.commit("bye")
        await gone.wait_for("on_tool_result")
        leaving = asyncio.create_task(host.unregister("gone", drain=True))
        await asyncio.sleep(0)
        gone.gate.set()
        await leaving

    assert ["before_prompt", "on_tool_result", "after_prompt", "stop"] == hooks_of(gone)
    assert [("gone", {"lost": 0})] == facts(sink, "plugin_unregistered")


async def test_draining_a_plugin_ends_within_its_deadline(make_host, sink):
    """Draining a plugin loses the work that outlasts its deadline."""
    short = 0.02
    gone = Gated("on_tool_result", on_tool_result=short, after_prompt=short, on_turn_dropped=short)
    async with make_host(gone=gone) as host:
        turn = await host.open_turn("hello", session="s")
        for number in range(12):
            await turn.tool_result(tool="t", call_id=str(number))
        await host.unregister("gone", drain=True)

        assert (0, True) == (await host.drain(), turn.receipt.lost > 0)
    assert [("gone", {"lost": turn.receipt.lost})] == facts(sink, "plugin_unregistered")


async def test_a_recall_of_an_unregistered_plugin_is_cancelled(make_host, sink):
    """The turn goes on without the unregistered plugin's recall, which is no failure, and waits for the other one."""
    gone = Gated("before_prompt", contribution=Contribution(blocks=("gone",)), before_prompt=60.0)
    other = Gated("before_prompt", contribution=Contribution(blocks=("other",)), before_prompt=60.0)
    async with make_host(gone=gone, other=other) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s"))
        await gone.wait_for("before_prompt")
        await host.unregister("gone")
        other.gate.set()
        turn = await opening

    assert ("other", ["before_prompt"], []) == (turn.system_prompt(), gone.cancelled, facts(sink, "plugin_failed"))


async def test_a_recall_that_has_answered_does_not_outlive_its_plugin(make_host):
    """An unregistered plugin's earlier contribution is not shown either."""
    gone = Gated(contribution=Contribution(blocks=("gone",)))
    slow = Gated("before_prompt")
    async with make_host(gone=gone, slow=slow) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s"))
        await slow.wait_for("before_prompt")
        await asyncio.sleep(0)
        await host.unregister("gone")
        slow.gate.set()

        assert ("", ["start", "before_prompt", "stop"]) == ((await opening).system_prompt(), gone.ended)


async def test_rules_are_there_as_long_as_their_plugin(make_host):
    """The next turn has no rule of a plugin that left, and has it again when the plugin is back."""
    prompts = []
    async with make_host(p=Gated(rules=("rule",)), q=Gated(rules=("other",))) as host:
        for step in (None, lambda: host.unregister("p"), lambda: host.register("p", Gated(rules=("rule",)))):
            if step:
                await step()
            turn = await host.open_turn("hello", session="s")
            prompts.append(turn.system_prompt())

    assert ["rule\n\nother", "other", "other\n\nrule"] == prompts


async def test_a_new_plugin_of_an_old_name_is_another_one(make_host):
    """A plugin under the name of one that is still leaving keeps its own work and learns nothing of old turns."""
    old, new = Gated("on_tool_result"), RecordingPlugin()
    async with make_host(p=old) as host:
        turn = await host.open_turn("hello", session="s", id="old")
        await turn.tool_result(tool="t", call_id="1")
        await old.wait_for("on_tool_result")
        leaving = asyncio.create_task(host.unregister("p", drain=True))
        await asyncio.sleep(0)
        await host.register("p", new)
        later = await host.open_turn("hello", session="s", id="new")
        await turn.commit("bye")
        await later.commit("bye")
        old.gate.set()
        await leaving
        await host.drain()

    assert ["before_prompt", "on_tool_result", "stop"] == hooks_of(old)
    assert ["before_prompt", "after_prompt", "stop"] == hooks_of(new)
    assert ["new"] == [call.arguments["turn"].id for call in new.calls_of("after_prompt")]


async def test_a_plugin_that_is_still_starting_is_not_called(make_host):
    """A turn that opens while a plugin starts shows neither its rules nor its recall, and is never passed to it."""
    slow = Gated("start", rules=("rule",), contribution=Contribution(blocks=("block",)))
    async with make_host() as host:
        arriving = asyncio.create_task(host.register("p", slow))
        await slow.wait_for("start")
        with pytest.raises(PluginRefused):
            await host.register("p", RecordingPlugin())
        early = await host.open_turn("hello", session="s", id="early")
        slow.gate.set()
        await arriving
        late = await host.open_turn("hello", session="s", id="late")
        await early.commit("bye")
        await late.commit("bye")

    assert ("", "rule\n\nblock") == (early.system_prompt(), late.system_prompt())
    assert ["before_prompt", "after_prompt", "stop"] == hooks_of(slow)


async def test_a_plugin_that_does_not_start_is_forgotten(make_host):
    """The name of a plugin that did not start is free again at once."""
    async with make_host() as host:
        with pytest.raises(PluginFailed):
            await host.register("p", FaultPlugin(Fault.RAISE, "start"))
        await host.register("p", Gated(rules=("rule",)))

        assert "rule" == (await host.open_turn("hello", session="s")).system_prompt()


# --- Closing --------------------------------------------------------------------------------------------------


async def test_closing_drops_open_turns_and_drains(make_host):
    """Closing drops the open turns as abandoned, and the plugins learn it before they are stopped."""
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        for _ in range(3):
            await host.open_turn("hello", session="s")

    assert [*["before_prompt"] * 3, *["on_turn_dropped"] * 3, "stop"] == hooks_of(plugin)
    assert {DropReason.ABANDONED} == {call.arguments["reason"] for call in plugin.calls_of("on_turn_dropped")}


async def test_closing_ends_the_openings_that_are_under_way(make_host, sink):
    """Closing ends an opening under way: its hook is cancelled, the turn dropped, and the caller gets an error."""
    plugin = Gated("before_prompt", before_prompt=60.0)
    async with make_host(p=plugin) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s"))
        await plugin.wait_for("before_prompt")
    with pytest.raises(HostNotOpen) as caught:
        await opening

    assert "the host was closed while the turn was being opened" == str(caught.value)
    assert (["before_prompt"], ["before_prompt", "on_turn_dropped", "stop"], []) == (
        plugin.cancelled,
        hooks_of(plugin),
        facts(sink, "plugin_failed"),
    )


async def test_what_closing_has_no_time_for_is_counted(make_host, sink):
    """Draining ends within the largest declared deadline; the rest is lost, counted and audited."""
    short = 0.05
    plugin = Gated("on_tool_result", on_tool_result=short, after_prompt=short, on_turn_dropped=short)
    async with make_host(p=plugin) as host:
        turn = await host.open_turn("hello", session="s")
        for number in range(12):
            await turn.tool_result(tool="t", call_id=str(number))
        await turn.commit("bye")
        engine = host._running()

    (lost,) = [each for _, each in facts(sink, "background_lost")]
    assert ({"count": turn.receipt.lost, "why": "closing"}, "stop", 0) == (
        lost,
        hooks_of(plugin)[-1],
        len(engine.background.backlog),
    )
    assert 0 < turn.receipt.lost <= 13


async def test_abandoned_calls_are_audited_when_the_host_closes(make_host, sink):
    """How many there were in all, and how many of them still run."""
    info = PluginInfo(version="0", contract="1.0", deadlines=Deadlines(before_prompt=0.01))
    stubborn = FaultPlugin(Fault.SLOW_CLEANUP, "before_prompt", info=info)
    async with make_host(p=stubborn) as host:
        for _ in range(2):
            await host.open_turn("hello", session="s")

    assert [(None, {"running": 2, "in_all": 2})] == facts(sink, "calls_abandoned")
    await stubborn.release()


async def test_a_cancelled_closing_still_ends(make_host):
    """A closing that is cancelled still closes the thread, the trail and the health."""
    plugin = Gated("on_turn_dropped", "stop", on_turn_dropped=60.0, stop=60.0)
    host = make_host(p=plugin)
    await host.open()
    await host.open_turn("hello", session="s")
    engine = host._running()
    closing = asyncio.create_task(host.close())
    for hook in ("on_turn_dropped", "stop"):
        await plugin.wait_for(hook)
        closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert (["on_turn_dropped", "stop"], 0, False) == (
        plugin.cancelled,
        len(engine.background.backlog),
        engine._watchdog._thread.is_alive(),
    )
    with pytest.raises(HostNotOpen):
        host.health()


async def test_a_thread_that_cannot_be_started_leaves_nothing_open(make_host, monkeypatch):
    """The host does not open, and closes all parts that it had opened."""

    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.Watchdog, "start", fail)
    plugin = RecordingPlugin()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await make_host(p=plugin).open()

    assert [] == plugin.calls
    monkeypatch.undo()
    async with make_host(p=plugin) as host:
        assert host.trail.verify().ok


async def test_idle_turns_are_swept_now_and_then(make_host, clock, monkeypatch):
    """A sweep drops a turn after an idle hour though no other turn is ever opened, and forgets idle memory too."""
    later = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def catch(seconds, callback, *arguments):
        if seconds != SWEEP_EVERY:
            return call_later(seconds, callback, *arguments)
        later.append(callback)
        return SimpleNamespace(cancel=lambda: later.append("cancelled"))

    monkeypatch.setattr(loop, "call_later", catch)
    plugin = RecordingPlugin()
    async with make_host(p=plugin) as host:
        await host.open_turn("hello", session="s")
        host._running().turns.injected.remember("s", "t", ["a text of some words"])
        clock.advance(3600)
        later.pop()()
        (call,) = await plugin.wait_for("on_turn_dropped")
        clock.advance(1)
        later.pop()()

        assert (DropReason.ABANDONED, 0, 1) == (
            call.arguments["reason"],
            len(host._running().turns.injected),
            len(later),
        )
    assert "cancelled" == later[-1]


async def test_a_call_that_hangs_while_the_host_closes_is_judged(make_host, sink):
    """A hook that hangs while the host closes is its plugin's timeout, and no lost background work."""
    plugin = Gated("on_turn_dropped", on_turn_dropped=0.05, on_tool_result=0.05, after_prompt=0.05)
    async with make_host(p=plugin) as host:
        await host.open_turn("hello", session="s")

    assert ([("p", "timeout")], []) == (
        [(name, each["category"]) for name, each in facts(sink, "plugin_failed")],
        facts(sink, "background_lost"),
    )


# --- Blocking the loop ----------------------------------------------------------------------------------------


class _Watching:
    """A sink that frees blocking code when the watchdog names it."""

    def __init__(self):
        self.named = threading.Event()

    def append(self, event):
        if event.name == "event_loop_blocked":
            self.named.set()

    def block(self):
        """Block the thread with short sleeps, until the watchdog names the culprit."""
        # On a busy machine the watchdog may have named this module before, in which the test itself stands still.
        self.named.clear()
        end = time.monotonic() + SAFETY
        while not self.named.is_set() and time.monotonic() < end:
            time.sleep(0.005)
        return self.named.is_set()


class Blocks:
    """Blocks in `before_prompt`, in the hook or in a task of its own, as long as the test sets `how`."""

    def __init__(self, watching):
        self.watching = watching
        self.how = "hook"
        self.named = []

    @hookimpl
    async def before_prompt(self):
        if self.how == "hook":
            self.named.append(self.watching.block())
        elif self.how == "task":
            await asyncio.create_task(self._block())

    async def _block(self):
        self.named.append(self.watching.block())


@pytest.mark.parametrize(
    ("how", "hook", "source"), [("hook", "before_prompt", "before_prompt"), ("task", None, "event_loop")]
)
async def test_a_plugin_that_blocks_the_loop_is_named(make_host, sink, how, hook, source):
    """While it still blocks; its health is degraded until its next good call, also if it blocked in its own task."""
    watching = _Watching()
    blocks = Blocks(watching)
    blocks.how = how
    async with make_host({"blocked_after_seconds": 0.02}, sinks=[watching], bad=blocks, good=RecordingPlugin()) as host:
        await host.open_turn("hello", session="s")
        health = host.health()
        blocks.how = "not at all"
        await host.open_turn("hello", session="s")

        assert ("degraded", {source: "blocked"}, "ok", "ok") == (
            health["bad"].state,
            health["bad"].faults,
            health["good"].state,
            host.health()["bad"].state,
        )
    assert ([True], [("bad", hook, True)]) == (
        blocks.named,
        [(each.plugin, each.hook, each.facts["seconds"] >= 0.02) for each in sink.named("event_loop_blocked")[-1:]],
    )


async def test_blocking_by_the_host_s_user_is_blamed_on_no_plugin(make_host, sink, monkeypatch):
    """The event of a blocked loop names no plugin, and no plugin's health changes."""
    # This module holds the plugin's class as well as the code that blocks.
    monkeypatch.setattr(watchdog, "NOT_TO_BLAME", watchdog.NOT_TO_BLAME | {__name__.partition(".")[0]})
    watching = _Watching()
    plugin = Gated("before_prompt")
    async with make_host({"blocked_after_seconds": 0.02}, sinks=[watching], p=plugin) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="s"))
        await plugin.wait_for("before_prompt")
        named = watching.block()
        plugin.gate.set()
        await opening

        assert (True, "ok") == (named, host.health()["p"].state)
    assert [(None, None)] == [(each.plugin, each.hook) for each in sink.named("event_loop_blocked")]


async def test_what_the_trail_could_not_write_is_said_in_the_log(make_host, monkeypatch, caplog):
    """The log reports events that the trail could not write when the host closes."""
    close = Trail.close
    monkeypatch.setattr(Trail, "close", lambda _: 3)

    async with make_host() as host:
        trail = host.trail

    close(trail)
    assert "event=beaver_hooks.audit_lost count=3" in caplog.messages
