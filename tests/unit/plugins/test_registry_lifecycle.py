"""What plugins offer, how they end, and how they come back."""

import asyncio
import threading

import pytest

from beaver_hooks import Host
from beaver_hooks.audit.memory_sink import MemorySink
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hostspecs import (
    Command,
    Deadlines,
    HostNotOpen,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    PluginUnavailable,
    Tool,
    UnknownPlugin,
    hookimpl,
)


class Toolbox:
    """Offers tools by name."""

    def __init__(self, *names):
        self.names = names

    @hookimpl
    def provide_tools(self):
        return [Tool(name=name, description=name, parameters={}, run=print) for name in self.names]


async def test_the_first_plugin_keeps_a_tool_s_name(tmp_path, sink):
    """A tool whose name is taken, by another plugin or by its own, is refused and audited; the plugin stays."""
    boxes = {"one": Toolbox("saw"), "two": Toolbox("saw", "axe", "axe")}

    async with Host(boxes, state_folder=tmp_path / "state", sinks=[sink]) as host:
        offered = {name: [tool.name for tool in tools] for name, tools in host.tools.items()}

    assert offered == {"one": ["saw"], "two": ["axe"]}
    assert [(event.plugin, dict(event.facts)) for event in sink.named("tool_refused")] == [
        ("two", {"tool": "saw", "taken_by": "one"}),
        ("two", {"tool": "axe", "taken_by": "two"}),
    ]


class Commanding:
    """Offers commands by name."""

    def __init__(self, *names):
        self.names = names

    @hookimpl
    def provide_commands(self):
        return (Command(name=name, summary=name, run=print) for name in self.names)


async def test_a_plugin_s_command_has_one_meaning(tmp_path, sink):
    """A plugin's second command of one name is refused and audited; two plugins may have one each."""
    plugins = {"one": Commanding("show"), "two": Commanding("show", "show", "forget")}

    async with Host(plugins, state_folder=tmp_path / "state", sinks=[sink]) as host:
        offered = {name: [command.name for command in commands] for name, commands in host.commands.items()}

    assert offered == {"one": ["show"], "two": ["show", "forget"]}
    assert [(event.plugin, dict(event.facts)) for event in sink.named("command_refused")] == [
        ("two", {"command": "show", "taken_by": "two"}),
    ]


class Failing:
    """Raises the given error in the given hook."""

    def __init__(self, hook, error):
        self.hook = hook
        self.error = error

    def fail(self, hook):
        if hook == self.hook:
            raise self.error

    @hookimpl
    def describe(self):
        self.fail("describe")
        return PluginInfo(version="1", contract="1.0")

    @hookimpl
    def configure(self):
        self.fail("configure")

    @hookimpl
    def provide_commands(self):
        yield from ()
        self.fail("provide_commands")

    @hookimpl
    async def start(self):
        self.fail("start")


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), GeneratorExit(), StopIteration(), PluginRefused("me")]
)
@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("describe", "plugin `odd` failed in `describe`: raised {}"),
        ("configure", "plugin `odd` failed in `configure`: raised {}"),
        ("provide_commands", "plugin `odd` failed in `provide_commands`: raised {}"),
        ("start", "plugin `odd` could not start: raised {}"),
    ],
)
async def test_registering_a_plugin_that_fails(tmp_path, sink, hook, said, error):
    """An exception of a hook comes out as an error with the plugin and the hook, one event and the plugin's health."""
    async with Host(state_folder=tmp_path / "state", sinks=[sink]) as host:
        with pytest.raises(PluginFailed) as caught:
            await host.register("odd", Failing(hook, error))
        health = host.health()["odd"]

    # Python itself turns a StopIteration that leaves a generator or a coroutine into a RuntimeError.
    cause, kind = caught.value.__cause__, type(caught.value.__cause__).__name__
    sentence = said.format(kind)
    assert cause is error or (kind, cause.__cause__) == ("RuntimeError", error)
    assert (str(caught.value), caught.value.plugin) == (sentence, "odd")
    assert (health.state, health.reason) == ("unavailable", sentence)
    assert [(event.name, event.plugin, dict(event.facts)) for event in sink.events] == [
        ("plugin_unavailable", "odd", {"error": kind})
    ]


async def test_a_plugin_says_itself_why_it_does_not_start(tmp_path, caplog):
    """The caller, the log and health show the reason that `start` gives."""
    async with Host(state_folder=tmp_path / "state") as host:
        with pytest.raises(PluginUnavailable, match="the disk is full"):
            await host.register("odd", Failing("start", PluginUnavailable("the disk is full; make room")))
        health = host.health()["odd"]

    assert ("unavailable", "the disk is full; make room") == (health.state, health.reason)
    assert 'reason="the disk is full; make room"' in caplog.text


async def test_a_name_that_cannot_be_had_is_nobody_s_fault(tmp_path, sink):
    """The plugin that has the name, or the host itself, is as well as before."""
    async with Host({"odd": Stopping()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        before = host.health()
        for name in ("odd", "host"):
            with pytest.raises(PluginRefused):
                await host.register(name, Stopping())

        assert (host.health(), sink.events) == (before, [])


class Slow:
    """Starts only once `go` is set, and then succeeds or raises the given error."""

    def __init__(self, error=None):
        self.error = error
        self.starting, self.go = asyncio.Event(), asyncio.Event()
        self.stopped = 0

    @hookimpl
    async def start(self):
        self.starting.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error

    @hookimpl
    async def stop(self):
        self.stopped += 1


async def test_an_old_start_that_fails_takes_only_itself(tmp_path):
    """A failing start removes its own plugin, not the one that took its name meanwhile."""
    old, new = Slow(ValueError()), Stopping()
    async with Host(state_folder=tmp_path / "state") as host:
        arriving = asyncio.create_task(host.register("odd", old))
        await old.starting.wait()
        await host.unregister("odd")
        await host.register("odd", new)
        old.go.set()
        with pytest.raises(PluginFailed):
            await arriving

        assert host.plugin("odd") is new


async def test_a_plugin_that_is_unregistered_while_it_starts(tmp_path):
    """The host stops the plugin once it has started, and its registration raises `UnknownPlugin`."""
    plugin = Slow()
    async with Host(state_folder=tmp_path / "state") as host:
        arriving = asyncio.create_task(host.register("odd", plugin))
        await plugin.starting.wait()
        await host.unregister("odd")
        plugin.go.set()
        with pytest.raises(UnknownPlugin) as caught:
            await arriving

    assert str(caught.value) == "the plugin `odd` was unregistered while it started"
    assert plugin.stopped == 1


async def test_a_plugin_that_starts_while_its_host_closes(tmp_path):
    """A plugin that starts after the others were stopped is stopped too, and its registration fails."""
    plugin = Slow()
    async with Host(state_folder=tmp_path / "state") as host:
        arriving = asyncio.create_task(host.register("odd", plugin))
        await plugin.starting.wait()
        await host._runtime.loader.stop_all()
        plugin.go.set()
        with pytest.raises(HostNotOpen) as caught:
            await arriving

        assert (host.plugins, plugin.stopped) == ({}, 1)
    assert str(caught.value) == "the host was closed while the plugin `odd` started; it was stopped again"


class Stopping:
    """Ends normally or with the given error."""

    def __init__(self, error=None):
        self.error = error
        self.stopped = 0

    @hookimpl
    async def stop(self):
        self.stopped += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), GeneratorExit()])
async def test_a_stop_that_fails_is_audited(tmp_path, sink, error):
    """Closing goes on after a failing `stop`, which is an event and a degraded health until the next good stop."""
    last = Stopping()
    async with Host({"calm": last, "odd": Stopping(error)}, state_folder=tmp_path / "state", sinks=[sink]):
        pass
    (event,) = sink.named("plugin_failed")
    async with Host({"odd": Stopping()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        kept = host.health()["odd"].faults
    async with Host({"odd": Stopping()}, state_folder=tmp_path / "state") as host:
        after = host.health()["odd"].state

    assert (event.plugin, event.hook, event.facts["category"], event.facts["error"]) == (
        "odd", "stop", "raised", type(error).__name__,
    )  # fmt: skip
    assert (last.stopped, dict(kept), after) == (1, {"stop": "raised"}, "ok")
    assert [each.facts["source"] for each in sink.named("plugin_recovered")] == ["stop"]


async def test_unregistering_stops_once(tmp_path):
    """A plugin that is unregistered is stopped then, and not again when the host closes."""
    plugin = Stopping()

    async with Host({"odd": plugin}, state_folder=tmp_path / "state") as host:
        member = host._runtime.registry.member("odd")
        await host.unregister("odd")
        await host._runtime.loader.stop(member)
        assert plugin.stopped == 1

    assert plugin.stopped == 1


async def test_faults_in_hooks_that_are_gone(tmp_path, sink):
    """A plugin whose new version lacks the hook that failed is no longer degraded for it."""

    class Quiet:
        @hookimpl
        async def before_prompt(self):
            """Has no `stop` any more."""

    async with Host({"odd": Stopping(ValueError())}, state_folder=tmp_path / "state"):
        pass
    async with Host({"odd": Quiet()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        assert host.health()["odd"].state == "ok"

    assert [(each.plugin, each.facts["source"]) for each in sink.named("plugin_recovered")] == [("odd", "stop")]


async def test_a_plugin_that_is_there_again(site, configured, tmp_path, sink):
    """A plugin that was unavailable and loads again is `ok` since now, and that is an event."""
    site.install("curated")
    site.install("odd", "raise ImportError")
    async with configured({}) as host:
        assert host.health()["odd"].state == "unavailable"

    class Back:
        @hookimpl
        async def before_prompt(self):
            """Works."""

    async with Host({"odd": Back()}, state_folder=tmp_path / "state", sinks=[sink]) as host:
        health = host.health()["odd"]

    assert (health.state, health.reason) == ("ok", None)
    assert [event.plugin for event in sink.named("plugin_loaded_again")] == ["odd"]


async def test_configure_answers_nothing(tmp_path):
    """An answer where none is wanted is refused."""

    class Chatty:
        @hookimpl
        def configure(self):
            return "ready"

    async with Host(state_folder=tmp_path / "state") as host:
        with pytest.raises(PluginRefused) as caught:
            await host.register("odd", Chatty())

    assert str(caught.value) == (
        "plugin `odd` was refused: hook `configure` returned a str; it must return `Deadlines` or nothing"
    )


async def test_configure_answers_deadlines(tmp_path):
    """Deadlines that follow from the settings take the place of those that were declared before them."""

    class Patient:
        @hookimpl
        def describe(self):
            return PluginInfo(version="1", contract="1.0", deadlines=Deadlines(start=1.0, after_prompt=2.0))

        @hookimpl
        def configure(self):
            return Deadlines(after_prompt=7.0)

    async with Host({"patient": Patient()}, state_folder=tmp_path / "state") as host:
        assert Deadlines(after_prompt=7.0) == host.plugins["patient"].deadlines


class Patience(MemorySink):
    """Lets a test wait until the host notices that its loop is blocked."""

    def __init__(self):
        super().__init__()
        self.noticed = threading.Event()

    def append(self, event):
        super().append(event)
        if event.name == "event_loop_blocked":
            self.noticed.set()


class Blocking:
    """Blocks the loop in `stop` until that was noticed."""

    def __init__(self, noticed):
        self.noticed = noticed

    @hookimpl
    async def stop(self):
        assert self.noticed.wait(20)


async def test_a_stop_that_blocks_is_no_success(tmp_path):
    """A stop that returns after blocking the event loop does not clear the fault `blocked`."""
    sink, config = Patience(), Config(host=HostSettings(blocked_after_seconds=0.01))
    async with Host({"odd": Blocking(sink.noticed)}, state_folder=tmp_path / "state", sinks=[sink], config=config):
        pass
    async with Host({"odd": Stopping()}, state_folder=tmp_path / "state") as host:
        faults = dict(host.health()["odd"].faults)

    assert faults == {"stop": "blocked"}
    assert sink.named("plugin_recovered") == []
