"""A plugin whose recall keeps failing is suspended, and comes back by itself."""

import asyncio
import threading
from datetime import timedelta

import pytest

from beaver_hooks.config.model import HostSettings
from beaver_hooks.log import make_log
from beaver_hooks.plugins.hook_calls import Call, HookDeadlines
from beaver_hooks.plugins.registry import Implementation, Member
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.plugins.watchdog import Watchdog
from beaver_hooks.receipts import health_store
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.receipts import Decision
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import HostReport
from beaver_hooks.receipts.suspension import Suspension
from beaver_hostspecs import Contribution, Deadlines, PluginInfo, hookimpl
from beaver_hostspecs.testing import RecordingPlugin, make_turn

DEADLINE = 0.02
SAFETY = 20.0
GIVEN = Contribution(blocks=("given",))


class Moody(RecordingPlugin):
    """Does in `before_prompt` the action that `mood` names."""

    def __init__(self, mood="well", *, version="1", deadline=DEADLINE):
        super().__init__(info=PluginInfo(version=version, contract="1.0", deadlines=Deadlines(before_prompt=deadline)))
        self.mood = mood
        self.gate = asyncio.Event()
        self.blocked = threading.Event()

    async def answer(self, call):
        return await getattr(self, self.mood)() if call.hook == "before_prompt" else None

    async def well(self):
        return GIVEN

    async def raises(self):
        raise OSError("no disk")

    async def answers_nonsense(self):
        return "nonsense"

    async def hangs(self):
        await asyncio.Event().wait()

    async def waits(self):
        await self.gate.wait()
        return GIVEN

    async def fails_late(self):
        await self.gate.wait()
        raise OSError

    async def blocks(self):
        self.blocked.wait(SAFETY)

    async def blocks_in_pieces(self):
        for _ in range(100):
            self.blocked.wait(0.08)
            await asyncio.sleep(0)

    async def blocks_in_a_task(self):
        await asyncio.create_task(self.blocks())

    def recalls(self):
        return len(self.calls_of("before_prompt"))


@pytest.fixture
def make_host(make_host, sink, clock):
    def make(plugin, *, fail_closed=(), sinks=(), **settings):
        plugins = {"p": plugin, "other": RecordingPlugin(Contribution(blocks=("other",)))}
        settings = {"blocked_after_seconds": 60.0, **settings}
        return make_host(plugins, settings, fail_closed=fail_closed, sinks=[sink, *sinks], clock=clock)

    return make


async def one_turn(host):
    """Run a turn and its background work to their end."""
    turn = await host.open_turn("hello", session="s")
    await turn.commit("bye")
    assert 0 == await host.drain(SAFETY)
    return turn


async def turns(host, number):
    return [await one_turn(host) for _ in range(number)]


def told(sink, *names):
    """Return the events about the plugin, with the facts that are the same in every run."""
    facts = ("category", "failures", "seconds", "until", "why")
    return [
        (each.name, *(each.facts[fact] for fact in facts if fact in each.facts))
        for each in sink.events
        if each.name in (names or ("plugin_suspended", "plugin_resumed"))
    ]


def at(clock, seconds):
    return (clock.now() + timedelta(seconds=seconds)).isoformat()


def left_out(turn):
    return [each for each in turn.receipt.plugins["p"].decisions if each.gate == "suspension"]


# --- Suspended -----------------------------------------------------------------------------------------------


@pytest.mark.shows("003-015")
@pytest.mark.parametrize(
    ("mood", "category"), [("raises", "raised"), ("answers_nonsense", "wrong_type"), ("hangs", "timeout")]
)
async def test_three_turns_in_a_row_that_fail(make_host, sink, clock, mood, category):
    """Three of fifty turns call the recall, and all the other hooks; health, event and receipts give time and reason."""
    plugin = Moody(mood)
    async with make_host(plugin) as host:
        last = (await turns(host, 50))[-1]

        assert (
            "degraded since 2026-01-02 12:00:00 UTC: "
            f"before_prompt: {category} (3 in a row); before_prompt is suspended until 2026-01-02 12:00:30 UTC "
            "and then tried again"
        ) == str(host.health()["p"])
    until = "before_prompt is suspended until 2026-01-02 12:00:30 UTC and then tried again"
    reason = f"{until}: 3 turns in a row failed, the last one with {category}"
    assert (3, [("plugin_suspended", category, 3, 30, at(clock, 30))]) == (plugin.recalls(), told(sink))
    assert 50 == len(plugin.calls_of("after_prompt"))
    assert [Decision(gate="suspension", verdict="left_out", reason=reason)] == left_out(last)
    assert "other" == last.system_prompt()


async def test_a_turn_that_is_answered_ends_the_row(make_host, sink):
    """Two failures, a success and two failures suspend nothing."""
    plugin = Moody()
    async with make_host(plugin) as host:
        for plugin.mood in ("raises", "raises", "well", "raises", "raises"):
            await one_turn(host)

        assert (5, [], 2) == (plugin.recalls(), told(sink), host.health()["p"].suspension.failures)


async def test_turns_that_fail_side_by_side_are_not_in_a_row(make_host, sink):
    """Ten turns at once that fail are one incident; a turn that is opened after them is the next one."""
    plugin = Moody("fails_late", deadline=SAFETY)
    async with make_host(plugin) as host:
        opening = [asyncio.create_task(host.open_turn("hello", session=f"s{number}")) for number in range(10)]
        await plugin.wait_for("before_prompt", 10)
        plugin.gate.set()
        await asyncio.gather(*opening)
        after = host.health()["p"].suspension.failures
        await turns(host, 5)

    assert (1, 12, 1) == (after, plugin.recalls(), len(told(sink)))


async def test_a_plugin_that_is_fail_closed_is_not_suspended(make_host, sink):
    """A fail-closed plugin that fails stops every turn and is not suspended."""
    plugin = Moody("raises")
    async with make_host(plugin, fail_closed=["p"]) as host:
        for _ in range(5):
            with pytest.raises(OSError, match="no disk"):
                await host.open_turn("hello", session="s")

    assert (5, []) == (plugin.recalls(), told(sink))


# --- Back again ----------------------------------------------------------------------------------------------


async def test_a_probe_that_is_answered_ends_the_suspension(make_host, sink, clock):
    """One turn probes the plugin without showing its answer, and the next turn uses the plugin as before."""
    plugin = Moody("raises")
    async with make_host(plugin) as host:
        await turns(host, 3)
        plugin.mood = "well"
        clock.advance(29)
        early = await one_turn(host)
        asked = plugin.recalls()
        clock.advance(1)
        probing, after = await turns(host, 2)

        assert "ok" == str(host.health()["p"])
    assert (3, 5, ["other", "other", "given\n\nother"]) == (
        asked, plugin.recalls(), [each.system_prompt() for each in (early, probing, after)],
    )  # fmt: skip
    reason = "before_prompt is suspended and tried again beside this turn"
    assert [Decision(gate="suspension", verdict="left_out", reason=reason)] == left_out(probing)
    assert ([], [("plugin_resumed", "answered"), ("plugin_recovered",)]) == (
        left_out(after), told(sink, "plugin_resumed", "plugin_recovered"),
    )  # fmt: skip


async def test_a_probe_that_fails_lengthens_the_suspension(make_host, sink, clock):
    """Each failed probe doubles the suspension, up to ten minutes; an interval has one probe, which no receipt has."""
    plugin = Moody("raises")
    async with make_host(plugin) as host:
        await turns(host, 3)
        for _ in range(7):
            clock.advance(host.health()["p"].suspension.seconds)
            probing, *_ = await turns(host, 3)

    assert 3 + 7 == plugin.recalls()
    assert [30, 60, 120, 240, 480, 600, 600, 600] == [each[3] for each in told(sink)]
    assert ((), {"after_prompt"}) == (
        probing.receipt.plugins["p"].failures,
        set(probing.receipt.plugins["p"].milliseconds),
    )


async def test_no_turn_waits_for_a_probe(make_host, clock):
    """While it hangs, its turn and others are opened and closed, the plugin learns from them, and none of them probes."""
    plugin = Moody("raises", deadline=SAFETY)
    async with make_host(plugin, background=False) as host:
        await turns(host, 3)
        plugin.mood = "waits"
        clock.advance(600)
        for number in range(3):
            turn = await host.open_turn("hello", session="s")
            await turn.commit("bye")
            assert ("committed", 4 + number) == (turn.receipt.state, len(plugin.calls_of("after_prompt")))
        probes = plugin.recalls() - 3
        plugin.gate.set()
        await host.drain(SAFETY)

        assert (1, False, "ok") == (probes, host.health()["p"].suspension.active, host.health()["p"].state)


async def test_a_clock_that_is_put_back_suspends_for_no_day(make_host, clock):
    """A time that is further away than any suspension counts as over."""
    plugin = Moody("raises")
    async with make_host(plugin) as host:
        clock.advance(86_400)
        await turns(host, 3)
        clock._now -= timedelta(days=1)
        plugin.mood = "well"
        await turns(host, 2)

        assert (5, False) == (plugin.recalls(), host.health()["p"].suspension.active)


async def test_what_was_under_way_when_it_was_suspended_ends_nothing(make_host, sink):
    """An answer of a turn that opened before the suspension does not end the suspension."""
    plugin = Moody("waits", deadline=SAFETY)
    async with make_host(plugin) as host:
        opening = asyncio.create_task(host.open_turn("hello", session="early"))
        await plugin.wait_for("before_prompt")
        plugin.mood = "raises"
        await turns(host, 3)
        plugin.gate.set()
        await opening

        assert (True, {"before_prompt": "raised"}) == (
            host.health()["p"].suspension.active,
            dict(host.health()["p"].faults),
        )
    assert 1 == len(told(sink))


async def test_a_probe_of_an_unregistered_plugin_is_cancelled(make_host, sink, clock):
    """A cancelled probe is neither a failure nor lost work, and a new plugin of the name is called at once."""
    plugin, other = Moody("raises", deadline=SAFETY), Moody()
    async with make_host(plugin) as host:
        await turns(host, 3)
        plugin.mood = "hangs"
        clock.advance(30)
        await host.open_turn("hello", session="s")
        await plugin.wait_for("before_prompt", 4)
        await host.unregister("p")
        await host.register("p", other)
        turn = await one_turn(host)

    assert ("other\n\ngiven", 1, [("p", {"lost": 0})]) == (
        turn.system_prompt(), other.recalls(),
        [(each.plugin, each.facts) for each in sink.named("plugin_unregistered")],
    )  # fmt: skip
    assert [("plugin_suspended", "raised", 3, 30, at(clock, 0)), ("plugin_resumed", "registered")] == told(sink)


async def test_closing_loses_no_probe(make_host, sink, clock):
    """A probe that still runs when the host closes is cut off in the end, and counts as nothing that was lost."""
    plugin = Moody("raises", deadline=60.0)
    async with make_host(plugin, default_deadline_seconds=0.01) as host:
        await turns(host, 3)
        plugin.mood = "hangs"
        clock.advance(30)
        await (await host.open_turn("hello", session="s")).commit("bye")
        await plugin.wait_for("before_prompt", 4)

    assert ([], 1) == (sink.named("background_lost"), len(told(sink)))


async def test_a_full_queue_has_no_room_for_a_probe(make_host, clock):
    """The next interval has one."""
    plugin = Moody("raises")
    async with make_host(plugin, queue_limit=1) as host:
        await turns(host, 3)
        plugin.mood = "well"
        clock.advance(30)
        turn = await host.open_turn("hello", session="s")
        await turn.tool_result(tool="t", call_id="1")
        clock.advance(30)
        await turn.tool_result(tool="t", call_id="2")
        await one_turn(host)
        clock.advance(30)
        await turns(host, 2)

        assert "ok" == host.health()["p"].state


# --- Another plugin of the same name -------------------------------------------------------------------------


class WithoutRecall:
    """Only learns."""

    @hookimpl
    async def after_prompt(self):
        """Learn."""


@pytest.mark.parametrize(
    ("plugin", "fail_closed", "why"),
    [
        (lambda: Moody(version="2"), [], "new_version"),
        (Moody, ["p"], "fail_closed"),
        (WithoutRecall, [], "hook_gone"),
    ],
)
async def test_what_is_not_what_it_was_has_another_chance(make_host, sink, plugin, fail_closed, why):
    """A new version, a plugin that became fail-closed and one without the hook start without a suspension."""
    async with make_host(Moody("raises")) as host:
        await turns(host, 3)
    async with make_host(plugin(), fail_closed=fail_closed) as host:
        await one_turn(host)

        assert ("ok", [("plugin_resumed", why)]) == (str(host.health()["p"]), told(sink)[1:])


async def test_registering_again_gives_another_chance(make_host, sink):
    """A plugin that is registered again is called again; its fault stands until it succeeds."""
    async with make_host(Moody("raises")) as host:
        await turns(host, 3)
        await host.unregister("p")
        await host.register("p", plugin := Moody("raises"))
        health = str(host.health()["p"])
        await turns(host, 10)

    assert ("degraded since 2026-01-02 12:00:00 UTC: before_prompt: raised (3 in a row)", 3) == (
        health,
        plugin.recalls(),
    )
    assert ["plugin_suspended", "plugin_resumed", "plugin_suspended"] == [each[0] for each in told(sink)]


# --- Several processes ---------------------------------------------------------------------------------------


async def test_turns_in_a_row_of_several_processes(make_host, clock):
    """Three programs of one turn each count as one of three turns; the fourth does not call the plugin, until later."""
    plugins = [Moody("hangs") for _ in range(4)]
    for plugin in plugins:
        async with make_host(plugin) as host:
            await one_turn(host)
    clock.advance(30)
    plugins.append(Moody())
    async with make_host(plugins[-1]) as host:
        before = str(host.health()["p"]).rpartition("; ")[2]
        await one_turn(host)
        after = str(host.health()["p"])

    assert [1, 1, 1, 0, 1] == [each.recalls() for each in plugins]
    assert ("before_prompt is suspended until 2026-01-02 12:00:30 UTC and then tried again", "ok") == (before, after)


async def test_processes_at_the_same_time(make_host, clock, monkeypatch):
    """A host that is open already hears of a suspension at its own first failure, and of a probe when its own is due."""
    monkeypatch.setattr(health_store, "GLANCE", 30.0)  # on a slow disk the other host may hold the lock for long
    one, two = Moody("raises"), Moody("raises")
    async with make_host(one) as first, make_host(two) as second:
        # What a host wrote before the clock moved on is written before it does.
        second.trail.flush()
        await turns(first, 3)
        first.trail.flush()
        await turns(second, 5)
        second.trail.flush()
        heard = two.recalls()
        clock.advance(30)
        await one_turn(first)
        first.trail.flush()
        await turns(second, 3)
        second.trail.flush()
        probed = (one.recalls(), two.recalls())
        one.mood = two.mood = "well"
        clock.advance(60)
        await one_turn(first)
        first.trail.flush()
        clock.advance(60)
        shown = [each.system_prompt() for each in await turns(second, 2)]

        assert (1, (4, 1), ["given\n\nother"] * 2) == (heard, probed, shown)


# --- Blocking ------------------------------------------------------------------------------------------------


class Releasing:
    """Frees a blocking plugin when the event of the given name arrives."""

    def __init__(self, plugin, name):
        self.plugin, self.name = plugin, name

    def append(self, event):
        if event.name == self.name:
            self.plugin.blocked.set()


@pytest.mark.parametrize("mood", ["blocks", "blocks_in_a_task"])
async def test_a_block_beyond_the_deadline(make_host, sink, clock, mood):
    """A plugin that blocks beyond its deadline is named and suspended for the longest time; no later turn calls it."""
    plugin = Moody(mood, deadline=0.3)
    async with make_host(plugin, sinks=[Releasing(plugin, "plugin_suspended")], blocked_after_seconds=0.02) as host:
        await turns(host, 5)
        health = host.health()["p"]
        clock.advance(600)
        plugin.mood = "well"
        await turns(host, 2)

        assert "given\n\nother" == (await one_turn(host)).system_prompt()
    assert "it blocked the event loop beyond its deadline" == health.suspension.why
    assert [("plugin_suspended", "blocked", 1, 600, at(clock, 0)), ("plugin_resumed", "answered")] == told(sink)
    names = [each.name for each in sink.events]
    assert names.index("event_loop_blocked") < names.index("plugin_suspended") < names.index("turn_committed")


async def test_a_block_while_several_turns_are_opened(make_host, sink, clock):
    """One blocking task of a plugin is one block, though several of its calls wait meanwhile."""
    plugin = Moody("waits", deadline=0.1)
    async with make_host(plugin, sinks=[Releasing(plugin, "plugin_suspended")], blocked_after_seconds=0.02) as host:
        opening = [asyncio.create_task(host.open_turn("hello", session=f"s{number}")) for number in range(5)]
        await plugin.wait_for("before_prompt", 5)
        await asyncio.create_task(plugin.blocks())
        await asyncio.gather(*opening)

    assert [("plugin_suspended", "blocked", 1, 600, at(clock, 600))] == told(sink)


async def test_a_probe_that_blocks(make_host, sink, clock):
    """A probe that blocks suspends its plugin for the longest time, with one event."""
    plugin = Moody("raises", deadline=0.05)
    releasing = Releasing(plugin, "plugin_suspended")
    async with make_host(plugin, sinks=[releasing], blocked_after_seconds=0.02) as host:
        await turns(host, 3)
        plugin.blocked.clear()
        plugin.mood = "blocks"
        clock.advance(30)
        await one_turn(host)

    assert [("raised", 3, 30), ("blocked", 4, 600)] == [each[1:4] for each in told(sink)]


@pytest.mark.parametrize("seconds", [0.1, 0.06], ids=["unseen", "seen"])
async def test_short_blocks_with_yields_between_them(make_host, sink, seconds, monkeypatch):
    """The lateness of the event loop is the plugin's own, whether or not its blocks are long enough to be seen."""
    # A turn in which the process stood still does not count, and on a busy machine it does so in every turn.
    monkeypatch.setattr(Watchdog, "_note_look", lambda *_, **__: None)
    plugin = Moody("blocks_in_pieces", deadline=0.4)
    async with make_host(plugin, blocked_after_seconds=seconds) as host:
        await turns(host, 4)

    assert [("plugin_suspended", "timeout", 3, 30)] == [each[:4] for each in told(sink)]


async def test_a_block_within_the_deadline_suspends_nothing(make_host, sink):
    """A plugin that blocks within its deadline is named and not suspended."""
    plugin = Moody("blocks", deadline=SAFETY)
    async with make_host(plugin, sinks=[Releasing(plugin, "event_loop_blocked")], blocked_after_seconds=0.02) as host:
        await one_turn(host)

        assert ("blocked", []) == (host.health()["p"].category, told(sink))


async def test_a_block_of_a_fail_closed_plugin_is_named_and_no_more(make_host, sink):
    """A fail-closed plugin that blocks is named and not suspended."""
    plugin = Moody("blocks", deadline=DEADLINE)
    async with make_host(
        plugin, fail_closed=["p"], sinks=[Releasing(plugin, "event_loop_blocked")], blocked_after_seconds=0.05
    ) as host:
        await one_turn(host)

        assert ([], False) == (told(sink), host.health()["p"].suspension.active)


# --- A machine that stands still -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("category", "late", "seen", "expected"),
    [
        ("timeout", 0.4, ["stood_still"], 1),
        ("timeout", 0.6, ["stood_still"], 0),
        ("timeout", 0.6, ["stood_still", "blocked"], 0),
        ("timeout", 0.6, ["held_up"], 0),
        ("timeout", 0.6, ["held_up", "blocked"], 1),
        ("timeout", 0.6, ["blocked"], 1),
        ("timeout", 0.6, [], 1),
        ("raised", 0.6, ["stood_still", "held_up"], 1),
    ],
)
def test_a_timeout_that_the_event_loop_was_late_for(clock, category, late, seen, expected):
    """A timeout does not count if the process stood still or only other code was seen blocking."""
    health = HealthStore(clock=clock, stored=StoredHealth(None, make_log()))
    recorder = Recorder(clock=clock, sinks=[], health=health, identify=str, log=make_log())
    suspensions = Suspensions(
        recorder=recorder,
        clock=clock,
        deadlines=HookDeadlines(HostSettings(deadline_cap_seconds=5.0)),
        blocked_after=0.5,
    )
    implementation = Implementation(
        hook="before_prompt", member=Member(name="p", plugin=object()), function=print, arguments=()
    )
    report = HostReport(plugin="p", hook="before_prompt", recorder=recorder)
    call = Call(implementation=implementation, report=report, task=None, started=1.0, deadline=6.0, late=late)
    for each in seen:
        setattr(call, each, True)
    builder = ReceiptBuilder(turn=make_turn(), recorded="turn-1", session="h:1", opened=clock.now())
    suspensions.failed(call, category, builder)

    assert expected == health["p"].suspension.failures


async def test_a_health_without_a_suspension_stays_as_it_was(make_host, sink):
    """A plugin that never failed has nothing about suspensions in its health, and no event."""
    async with make_host(Moody()) as host:
        await turns(host, 3)

        assert (Suspension(), []) == (host.health()["p"].suspension, told(sink))
