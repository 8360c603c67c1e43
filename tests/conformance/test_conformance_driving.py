"""The loop that drives a plugin without a host: reading it, calling it, interrupting it."""

import asyncio

import attrs
import pytest
from conformance.notes import Notes, NotesHarness
from hypothesis import given
from hypothesis import strategies as st

from beaver_hostspecs import Contribution, Deadlines, PluginInfo, Reference, Trust, hookimpl
from beaver_hostspecs.conformance import PluginCard, PluginHarness
from beaver_hostspecs.conformance.plugins.deadlines import interrupt
from beaver_hostspecs.conformance.plugins.driver import BOUNDARY, DEFAULT_SECONDS, made, started, texts_of
from beaver_hostspecs.conformance.plugins.hook_reader import HOOKS, faults_of, hooks_of
from beaver_hostspecs.conformance.plugins.offers import command_tries, tool_tries
from beaver_hostspecs.contributions import Hint
from beaver_hostspecs.rendering import check_boundary
from beaver_hostspecs.testing import COROUTINE_HOOKS, PLAIN_HOOKS, RecordingPlugin

WAYS = {
    "yields": lambda: asyncio.sleep(0),
    "sleeps": lambda: asyncio.sleep(0.001),
    "threads": lambda: asyncio.to_thread(int),
    "nested": lambda: asyncio.wait_for(asyncio.sleep(0.001), 1),
}


class BareHarness(PluginHarness):
    """A harness of nothing but what it must bring."""

    card = PluginCard(plugin="bare")

    def __init__(self, plugin=None):
        self.plugin = plugin

    def make(self):
        return self.plugin


async def waits(ways, trace):
    for way in ways:
        trace.append(way)
        await WAYS[way]()
    return "done"


class Guarded(Notes):
    """Allows its tool and its command as configured, and records the callers that it served."""

    allows = staticmethod(lambda caller: True)

    def __init__(self):
        super().__init__()
        self.served = set()

    @hookimpl
    def provide_tools(self):
        return [attrs.evolve(each, allows=self.allows) for each in super().provide_tools()]

    @hookimpl
    def provide_commands(self):
        return [attrs.evolve(each, allows=self.allows) for each in super().provide_commands()]

    async def find(self, arguments, turn, report):
        self.served.add(("tool", turn.trust))

    async def count(self, words, context, report):
        self.served.add(("command", context.trust))


class OwnersOnly(Guarded):
    allows = staticmethod(lambda caller: caller.trust is Trust.FULL)


@pytest.mark.parametrize(("plugin", "expected"), [(Guarded, {Trust.FULL, Trust.PUBLIC}), (OwnersOnly, {Trust.FULL})])
async def test_what_is_not_allowed_is_not_tried(plugin, expected):
    """Tools and commands are called only for the trusts that they allow."""
    async with started(NotesHarness(plugin)) as driven:
        for _, call in (*tool_tries(driven), *command_tries(driven)):
            await call

    assert {(what, trust) for what in ("tool", "command") for trust in expected} == driven.plugin.served


# --- Reading --------------------------------------------------------------------------------------------------------


def test_all_hooks_are_known():
    """The kit knows every hook of the contract, and finds each of them in a plugin that has all."""
    assert {*PLAIN_HOOKS, *COROUTINE_HOOKS} == set(HOOKS) == set(hooks_of(RecordingPlugin()))


def test_a_hook_of_another_name():
    """A method with another name can implement a hook by `specname`."""

    class Renamed:
        @hookimpl(specname="stop")
        async def shut(self):
            return None

    plugin = Renamed()

    assert ({"stop": plugin.shut}, []) == (hooks_of(plugin), faults_of(plugin))


def test_a_class_is_no_plugin():
    """Reading a class instead of an instance reports that as a fault."""
    assert ["it is a class; a host registers instances"] == faults_of(Notes)


def test_all_faults_are_told():
    """Reading a plugin reports all of its faults at once."""

    class Wrong:
        @hookimpl(wrapper=True)
        def stop(self, now, *more, later=None):
            yield

        @hookimpl
        async def describe(self):
            return None

        before_prompt = None
        after_prompt = "not a method"

    assert [
        "`describe` is to be a plain function",
        "`stop` is a wrapper",
        "`stop` is to be a coroutine function",
        "`stop` takes `now`, which the hook does not give",
        "`stop` takes `more`, which the hook does not give",
        "`after_prompt` has the name of a hook and no marker",
    ] == faults_of(Wrong())


def test_reading_runs_no_property():
    """No code of the plugin runs while it is read."""

    class Trapped(Notes):
        @property
        def trap(self):
            raise LookupError("do not look")

    assert [] == faults_of(Trapped())


# --- Driving --------------------------------------------------------------------------------------------------------


async def test_a_plugin_without_hooks_is_driven():
    """Driving a plugin skips the hooks that it does not implement."""

    class Quiet:
        @hookimpl
        async def stop(self):
            return None

    async with started(BareHarness(Quiet())) as driven:
        assert None is await driven.run("Hello.")
        assert ((), (), DEFAULT_SECONDS) == (driven.tools, driven.commands, driven.deadline("stop"))


async def test_a_harness_has_defaults():
    """A harness has defaults for everything but its card and its plugin."""
    harness = BareHarness()
    done = [await harness.open(), await harness.trouble(), await harness.close()]

    assert (None, None, "a fact", [None] * 3) == (harness.settings, harness.secret, harness.saying("a fact"), done)
    with pytest.raises(NotImplementedError):
        PluginHarness.make(harness)


async def test_order_of_calls():
    """A turn is asked for, told of, and closed once; the plugin is stopped at the end and its folder is gone."""
    plugin = RecordingPlugin()
    async with started(BareHarness(plugin)) as driven:
        await driven.run("One.")
        await driven.ask("Two.")
        assert driven.folder.is_dir()

    hooks = ["before_prompt", "after_prompt", "before_prompt", "on_turn_dropped"]
    before = ["describe", "configure", "provide_tools", "provide_commands", "start"]
    assert [*before, *hooks, "stop"] == [call.hook for call in plugin.calls]
    assert not driven.folder.exists()
    assert ["turn-1", "turn-2"] == [call.arguments["turn"].id for call in plugin.calls_of("before_prompt")]


async def test_only_wanted_arguments():
    """A hook receives only the arguments that it takes."""

    class Modest:
        @hookimpl
        async def after_prompt(self, answer):
            self.answer = answer.text

    plugin = Modest()
    async with started(BareHarness(plugin)) as driven:
        await driven.run("One.", answer="Two.")

    assert "Two." == plugin.answer


async def test_deadlines_of_configure_win():
    """Deadlines that `configure` returns replace all deadlines of `describe`."""

    class Timed:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(before_prompt=1.0, stop=2.0))

        @hookimpl
        def configure(self):
            return Deadlines(before_prompt=3.0)

    async with made(BareHarness(Timed())) as driven:
        assert (3.0, DEFAULT_SECONDS) == (driven.deadline("before_prompt"), driven.deadline("stop"))


async def test_a_failure_stops_the_plugin():
    """Where a turn fails, the plugin is stopped, and the first failure is what comes out."""

    class Failing(Notes):
        stopped = False

        def contribution(self, turn, report):
            raise LookupError("no notes")

        @hookimpl
        async def stop(self):
            await super().stop()
            self.stopped = True
            raise LookupError("nor an end")

    harness = NotesHarness(Failing)
    with pytest.raises(AssertionError) as caught:
        async with started(harness) as driven:
            await driven.run("One.")

    assert ("`before_prompt` raised LookupError: no notes", True) == (str(caught.value), driven.plugin.stopped)


async def test_a_stop_that_fails():
    """An exception from `stop` is reported when nothing else failed."""

    class Endless(Notes):
        @hookimpl
        async def stop(self):
            raise asyncio.CancelledError

    with pytest.raises(AssertionError, match="`stop` raised CancelledError, though nobody cancelled it"):
        async with started(NotesHarness(Endless)) as driven:
            driven.plugin.worker.cancel()


def test_texts():
    """Blocks, references and hints are what a model may be shown."""
    hint = Hint(tool="t", registry="r", fingerprint="f", guidance="three")
    contribution = Contribution(blocks=["one"], references=[Reference(text="two")], hints=[hint])

    assert (["one", "two", "three"], []) == (texts_of(contribution), texts_of(None))


def test_the_boundary():
    """References are rendered between boundaries that a host could have made."""
    assert BOUNDARY == check_boundary(BOUNDARY)


# --- Interrupting ---------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([*WAYS]), max_size=6), st.integers(1, 8))
def test_interrupted_at_each_await(ways, point):
    """`interrupt` cancels a call at its n-th wait, and leaves a call with fewer waits alone."""
    trace = []

    reached = asyncio.run(interrupt(waits(ways, trace), point, "the call", seconds=5))

    assert (point <= len(ways), ways[:point]) == (reached, trace)


async def test_what_is_waited_for_is_cancelled():
    """Cancellation reaches what the call waits for, as it does when a host cancels."""
    waited_for = asyncio.get_running_loop().create_future()

    async def call():
        await waited_for

    assert await interrupt(call(), 1, "the call", seconds=5)
    assert waited_for.cancelled()


async def test_a_timeout_inside_is_not_mistaken():
    """A call whose own timeout is around the await still ends as cancelled."""

    async def call():
        async with asyncio.timeout(1):
            await asyncio.sleep(0)

    assert await interrupt(call(), 1, "the call", seconds=5)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("swallow", "the call swallowed its cancellation and went on"),
        ("raise", "the call raised LookupError when it was cancelled: no"),
        ("exit", "the call raised SystemExit when it was cancelled: 3"),
    ],
)
async def test_what_a_cancelled_call_must_not_do(ending, expected):
    """`interrupt` fails when the cancelled call goes on or raises another error."""
    errors = {"raise": LookupError("no"), "exit": SystemExit(3)}

    async def call():
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if ending in errors:
                raise errors[ending] from None

    with pytest.raises(AssertionError) as caught:
        await interrupt(call(), 1, "the call", seconds=5)

    assert expected == str(caught.value)


async def test_an_error_before_the_point():
    """`interrupt` fails when the call raises an error before it is cancelled."""

    async def call():
        raise LookupError("no")

    with pytest.raises(AssertionError, match="the call raised LookupError when it was cancelled: no"):
        await interrupt(call(), 1, "the call", seconds=5)
