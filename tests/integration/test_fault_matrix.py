"""A fault at any hook costs its plugin its own contribution, and costs the host and the other plugins nothing."""

import asyncio
import logging
from collections import Counter

import pytest
from integration.faults_kit import (
    BACKUP_CASES,
    HANGING,
    LOADING_CASES,
    LOADING_HOOKS,
    PROMPT,
    SESSION,
    STOP_CASES,
    SUBJECT_CASES,
    TURN_CASES,
    Outcome,
    Sink,
    host_of,
    impatient_info,
    opened,
    other_tasks,
    release_when_blamed,
    releasing,
    run_loaded,
    run_registered,
)

from beaver_hooks import Host
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import Contribution, Deadlines, Hint, PluginFailed, PluginInfo, Reference
from beaver_hostspecs.testing import Canary, Fault, FaultError, FaultPlugin, RecordingPlugin, fault_cases

GENEROUS = 50.0
"""Seconds: less than the slow clean-up takes, and far more than the deadline."""

LINGERING = frozenset({Fault.SLOW_CLEANUP, Fault.SWALLOW_CANCEL})
"""Faults whose task outlives its cancellation."""


def faulty(fault: Fault, hook: str, canary: Canary) -> FaultPlugin:
    # A test releases what hangs or blocks; the duration is longer than any test may take.
    return FaultPlugin(fault, hook, secret=canary.secret, info=impatient_info(hook), duration=60.0)


def harmless() -> RecordingPlugin:
    return RecordingPlugin(info=PluginInfo(version="0", contract="1.0"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Returns the outcome of a run without a fault; runs each kind once."""
    known = {}

    async def outcome(run, **how):
        kind = (run, *how.items())
        if kind not in known:
            known[kind] = await run(harmless(), tmp_path_factory.mktemp("clean") / "run", **how)
        return known[kind]

    return outcome


def expected_event(fault: Fault, hook: str) -> str:
    if fault is Fault.BLOCK:
        return "event_loop_blocked"
    return "plugin_unavailable" if hook in LOADING_HOOKS else "plugin_failed"


def assert_only_the_plugin_suffers(fault: Fault, hook: str, clean: Outcome, seen: Outcome) -> None:
    event = expected_event(fault, hook)
    # A plugin that could not be loaded has no failures in a row: it is never called.
    state = ("unavailable", 0) if event == "plugin_unavailable" else ("degraded", 1)
    # It blocks until it is named, which is longer than its deadline.
    suspended = [("plugin_suspended", "faulty")] if (fault, hook) == (Fault.BLOCK, "before_prompt") else []

    assert seen.rendered == clean.rendered
    assert seen.events == clean.events + Counter(dict.fromkeys([(event, "faulty"), *suspended], 1))
    assert seen.states == {**clean.states, "faulty": state}
    assert clean.states["faulty"] == ("ok", 0)
    assert seen.complaints == ()
    assert seen.left == (1 if fault in LINGERING else 0)
    assert clean.left == 0


def assert_nothing_leaks(canary: Canary, seen: Outcome, shown: str) -> None:
    found = {name: traces for name, text in {**seen.texts, "stderr": shown}.items() if (traces := canary.traces(text))}

    assert found == {}


def assert_content_free(seen: Outcome) -> None:
    """The prompt is content: no stored text shows it, whatever the plugin's exceptions say."""
    kept = {name: text for name, text in seen.texts.items() if name not in {"turn", "host"}}
    found = [name for name, text in kept.items() if PROMPT in (text if isinstance(text, str) else text.decode("latin"))]

    assert found == []


def test_the_matrix_is_complete():
    """Every fault that the kit has is tried at every hook that can have it."""
    assert sorted(fault_cases()) == sorted((*TURN_CASES, *LOADING_CASES, *STOP_CASES, *BACKUP_CASES, *SUBJECT_CASES))


async def test_what_is_searched_for_leaks_would_show_them(canary, tmp_path):
    """The database, its log file and the lines of the log are among the texts, and a leak in any of them is found."""
    leaking = logging.getLogger("somebody.else")

    class Leaking(FaultPlugin):
        async def answer(self, call):
            leaking.debug("connecting with %s", canary.reveal())
            return await super().answer(call)

    plugin = Leaking(Fault.RAISE, "before_prompt", secret=canary.secret)
    seen = await run_registered(plugin, tmp_path)

    assert {"host.db", "host.db-wal", "closed host.db", "kept", "receipt", "health"} <= {*seen.texts}
    assert "plugin_error" in seen.texts["log"]
    assert {name for name, text in seen.texts.items() if canary.traces(text)} == {"log"}


@pytest.mark.shows("000-006", "000-008", "000-009", "001-004", "001-031", "002-041", "003-015", "003-110")
@pytest.mark.parametrize(("fault", "hook"), TURN_CASES)
async def test_a_fault_in_a_turn_costs_only_its_own_contribution(fault, hook, *, canary, clean, tmp_path, capfd):
    """The turn is the same bytes as without the plugin's answer, with one event and one health change for the fault."""
    then = {"drop": hook == "on_turn_dropped", "compact": hook == "before_compaction"}
    async with asyncio.timeout(GENEROUS if fault in HANGING else 60):
        seen = await run_registered(faulty(fault, hook, canary), tmp_path / "faulty", **then)

    assert_only_the_plugin_suffers(fault, hook, await clean(run_registered, **then), seen)
    assert_nothing_leaks(canary, seen, "".join(capfd.readouterr()))
    assert_content_free(seen)


@pytest.mark.shows("000-109")
@pytest.mark.parametrize(("fault", "hook"), LOADING_CASES)
async def test_a_fault_while_loading_leaves_only_that_plugin_out(fault, hook, *, canary, clean, tmp_path, capfd):
    """A plugin that is not required and cannot be loaded is `unavailable`; the others load and the turn is the same."""
    async with asyncio.timeout(GENEROUS if fault in HANGING else 60):
        seen = await run_loaded(faulty(fault, hook, canary), tmp_path / "faulty")

    assert_only_the_plugin_suffers(fault, hook, await clean(run_loaded), seen)
    assert_nothing_leaks(canary, seen, "".join(capfd.readouterr()))
    assert_content_free(seen)


@pytest.mark.parametrize(("fault", "hook"), STOP_CASES)
async def test_a_fault_while_stopping_is_audited_and_stopping_goes_on(fault, hook, *, canary, clean, tmp_path, capfd):
    """A plugin that fails to stop is still out of service, with one event and one health change."""
    async with asyncio.timeout(GENEROUS if fault in HANGING else 60):
        seen = await run_registered(faulty(fault, hook, canary), tmp_path / "faulty", unregister=True)

    assert_only_the_plugin_suffers(fault, hook, await clean(run_registered, unregister=True), seen)
    assert_nothing_leaks(canary, seen, "".join(capfd.readouterr()))


@pytest.mark.parametrize("fault", sorted(LINGERING))
async def test_a_call_that_outlives_its_host_is_counted(fault, canary, tmp_path):
    """Closing does not wait for a hanging `stop`: an event counts the calls that still run."""
    plugin, sink = faulty(fault, "stop", canary), Sink()
    async with asyncio.timeout(GENEROUS):
        async with releasing(plugin), host_of(plugin, tmp_path, sink):
            pass

    told = {event.name: dict(event.facts) for event in sink.events if event.plugin is None}
    assert told == {"calls_abandoned": {"running": 1, "in_all": 1}}


async def test_a_stop_that_ends_when_it_is_cancelled_is_not_counted_as_running(canary, tmp_path):
    """A hanging `stop` that heeds its cancellation leaves one failure and nothing that still runs."""
    plugin, sink = faulty(Fault.AWAIT_FOREVER, "stop", canary), Sink()
    async with releasing(plugin), Host({"faulty": plugin}, state_folder=tmp_path, sinks=[sink]):
        pass

    assert sink.names() == Counter({("plugin_failed", "faulty"): 1})
    assert other_tasks() == set()


async def test_background_work_that_hangs_on_is_counted_when_the_host_closes(canary, tmp_path):
    """A call that swallows its cancellation runs on, whether its own deadline or the closing host cancelled it."""
    plugin, sink = faulty(Fault.SWALLOW_CANCEL, "after_prompt", canary), Sink()
    plugin.info = PluginInfo(
        version="0", contract="1.0", deadlines=Deadlines(after_prompt=0.5, on_tool_result=0.1, on_turn_dropped=0.1)
    )
    async with releasing(plugin), Host({"faulty": plugin}, state_folder=tmp_path, sinks=[sink]) as host:
        turn = await host.open_turn(PROMPT, session=SESSION)
        await turn.commit("He moved the river.")
        await plugin.wait_for("after_prompt")
        # Closing drains for as long as one call may take: the second one is not given its whole time.
        turn = await host.open_turn(PROMPT, session=SESSION)
        await turn.commit("He moved the sea.")

    told = {event.name: dict(event.facts) for event in sink.events if event.plugin is None}
    assert told["calls_abandoned"]["running"] >= 1


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.BLOCK])
async def test_a_fail_closed_plugin_stops_the_turn(fault, canary, tmp_path):
    """`open_turn` raises, the turn is dropped once, and every plugin gets the reason `failed`."""
    plugin, sink = faulty(fault, "before_prompt", canary), Sink()
    host = host_of(plugin, tmp_path, sink, fail_closed=True)
    async with asyncio.timeout(GENEROUS), opened(host, plugin):
        wanted = FaultError if fault is Fault.RAISE else PluginFailed
        with pytest.raises(wanted) as caught:
            await host.open_turn(PROMPT, session=SESSION)
        assert await host.drain(30) == 0

        told = {name: [call.arguments["reason"] for call in host.plugin(name).calls_of("on_turn_dropped")]
                for name in ("good", "faulty", "last")}  # fmt: skip
        assert told == {"good": ["failed"], "faulty": ["failed"], "last": ["failed"]}
        assert len(host._running().turns.open_turns) == 0
        assert host.plugin("last").calls_of("after_prompt") == ()
        if wanted is PluginFailed:
            assert caught.value.plugin == "faulty"
            canary.assert_clean(str(caught.value), repr(caught.value))

    assert sink.names() == Counter({("plugin_failed", "faulty"): 1, ("turn_dropped", None): 1})


async def test_a_fail_closed_plugins_own_error_is_raised_unchanged(tmp_path):
    """`open_turn` raises the very object that the plugin raised."""
    error = FaultError("mine")

    class Raising(RecordingPlugin):
        async def answer(self, call):
            if call.hook == "before_prompt":
                raise error

    host = host_of(Raising(), tmp_path, Sink(), fail_closed=True)
    async with opened(host):
        with pytest.raises(FaultError) as caught:
            await host.open_turn(PROMPT, session=SESSION)

        assert caught.value is error


async def test_a_fail_closed_plugin_that_blocks_and_then_answers_stops_nothing(canary, tmp_path):
    """A fail-closed plugin that blocks and then answers is degraded, and the turn goes on."""
    plugin = faulty(Fault.BLOCK, "before_prompt", canary)
    sink = Sink(release_when_blamed(plugin))
    host = host_of(plugin, tmp_path, sink, fail_closed=True)
    async with opened(host, plugin):
        turn = await host.open_turn(PROMPT, session=SESSION)

        assert await turn.commit("He moved the river.")
        assert host.health()["faulty"].category == "blocked"


class Cunning(str):
    """A str that ends the process of any code that looks at it."""

    __slots__ = ()

    def __len__(self):
        raise SystemExit

    __bool__ = __len__

    def __getitem__(self, _):
        raise SystemExit

    encode = isascii = __getitem__


class CunningScore(float):
    """A number that ends the process of any code that formats it."""

    __slots__ = ()

    def __format__(self, _):
        raise SystemExit


def half_made(kind, **fields):
    """Return a record that no constructor has checked."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize(
    "answer",
    [
        half_made(Contribution),
        half_made(Contribution, blocks=["a list"], references=(), hints=()),
        half_made(Contribution, blocks=(), references=(half_made(Reference),), hints=()),
        half_made(Contribution, blocks=(), references=(half_made(Reference, text="no kind"),), hints=()),
        Contribution(blocks=(Cunning("a"),)),
        Contribution(references=(Reference(text=Cunning("a")),)),
        Contribution(references=(Reference(text="a", kind=Cunning("a")),)),
        Contribution(references=(Reference(text="a", id=Cunning("a")),)),
        Contribution(references=(Reference(text="a", score=CunningScore(1.0)),)),
        Contribution(hints=(Hint(tool="t", registry="r", fingerprint="f", guidance=Cunning("a")),)),
    ],
    ids=range(10),
)
async def test_an_answer_that_only_looks_right_costs_nobody_else_anything(answer, tmp_path):
    """A contribution that is half made, or that runs code when it is read, is its plugin's failure."""
    plugin = harmless()
    clean = await run_registered(plugin, tmp_path / "clean")
    plugin.contribution = answer
    seen = await run_registered(plugin, tmp_path / "faulty")

    assert seen.rendered == clean.rendered
    assert seen.events == clean.events + Counter({("plugin_failed", "faulty"): 1})
    assert seen.states == {**clean.states, "faulty": ("degraded", 1)}


@pytest.mark.parametrize("hook", ["on_tool_result", "after_prompt", "on_turn_dropped"])
async def test_a_host_that_awaits_its_background_waits_for_the_deadline_only(hook, canary, tmp_path):
    """Without a background, closing the turn returns after the deadline, and the failure is written down by then."""
    plugin, sink = faulty(Fault.SWALLOW_CANCEL, hook, canary), Sink()
    config = Config(host=HostSettings(background=False, blocked_after_seconds=60))
    async with opened(Host({"faulty": plugin}, config=config, state_folder=tmp_path, sinks=[sink]), plugin) as host:
        async with asyncio.timeout(GENEROUS):
            turn = await host.open_turn(PROMPT, session=SESSION)
            await turn.tool_result(tool="search", call_id="call-1", output="a note")
            await (turn.drop("blocked") if hook == "on_turn_dropped" else turn.commit("He moved the river."))

        assert sink.names()["plugin_failed", "faulty"] == 1
        assert len(host._running().background.backlog) == 0
        assert turn.receipt.plugins["faulty"].failures[0].hook == hook


@pytest.mark.parametrize("fault", sorted(HANGING))
async def test_nobody_waits_for_an_abandoned_call(fault, canary, tmp_path):
    """`open_turn` returns once the overdue call is cancelled, and does not wait for the call to end."""
    plugin = faulty(fault, "before_prompt", canary)
    host = host_of(plugin, tmp_path, Sink())
    async with opened(host, plugin):
        turn = await host.open_turn(PROMPT, session=SESSION)

        calls = host._running().calls
        assert plugin.running == (1 if fault in LINGERING else plugin.running)
        assert calls.abandoned_count == 1
        assert len(other_tasks()) <= 1
        assert turn.receipt.plugins["faulty"].failures[0].category == "timeout"
