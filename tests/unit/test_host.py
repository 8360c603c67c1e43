"""The host's own life, how it refuses misuse, and what it tells about itself."""

import asyncio
import gc
import json
import subprocess
import sys
import textwrap
import threading

import attrs
import pytest
from processes import in_child

from beaver_hooks import Host
from beaver_hooks.audit.trail import Trail
from beaver_hooks.config import Config
from beaver_hooks.config.model import HostSettings
from beaver_hooks.turns.fields import is_ours
from beaver_hostspecs import (
    AuditUnavailable,
    Command,
    CommandContext,
    ConfigurationError,
    Contribution,
    ForkedHost,
    HostMisused,
    HostNotOpen,
    InvalidTurn,
    NotAllowed,
    PluginFailed,
    PluginInfo,
    PluginMissing,
    PluginRefused,
    Reference,
    Services,
    Tool,
    UnknownPlugin,
    WrongLoop,
)
from beaver_hostspecs.testing import Fault, FaultPlugin, FrozenClock, RecordingPlugin

NOT_OPEN = "this host is not open; enter it with `async with host:` or `await host.open()`"
OPEN_ALREADY = "this host is open already; close it before you open it again"
FORKED = (
    "this host was opened before a fork and cannot be used in the child; spawn the child instead, and open a host there"
)
OTHER_LOOP = "a host can only be used in the event loop that opened it; without an event loop use beaver_hooks.SyncHost"


@pytest.fixture(autouse=True)
def complaints(caplog):
    """Fail if asyncio has anything to complain about."""
    yield
    gc.collect()
    assert [] == [each.getMessage() for each in caplog.records if each.name == "asyncio"]


def threads():
    return {each for each in threading.enumerate() if each.name.startswith("beaver")}


# --- Opening and closing --------------------------------------------------------------------------------------


async def test_plugins_live_as_long_as_the_host(make_host):
    """Plugins are described, set up and started when the host opens, and stopped once in reverse when it closes."""
    order = []
    one, two = RecordingPlugin(), RecordingPlugin()
    for name, plugin in (("one", one), ("two", two)):
        plugin.calls = _Tee(name, order)
    async with make_host({"one": one, "two": two}) as host:
        assert {"one": one.info, "two": two.info} == host.plugins

    setup = ["describe", "configure", "provide_tools", "provide_commands", "start"]
    expected = [*((name, hook) for name in ("one", "two") for hook in setup), ("two", "stop"), ("one", "stop")]
    assert (expected, set()) == (order, threads())


class _Tee(list):
    """A list that tells another one."""

    def __init__(self, name, order):
        super().__init__()
        self.name, self.order = name, order

    def append(self, call):
        super().append(call)
        self.order.append((self.name, call.hook))


async def test_a_host_that_is_not_open_says_so(make_host):
    """Every call raises before the host is entered and after it is left."""
    host = make_host()
    uses = (
        host.close,
        host.drain,
        lambda: host.open_turn("hello", session="s"),
        lambda: host.register("p", RecordingPlugin()),
        lambda: host.unregister("p"),
        lambda: host.commit("t", "bye"),
        lambda: host.drop("t"),
        lambda: host.receipt("t"),
    )
    said = []
    for _ in range(2):
        for use in uses:
            with pytest.raises(HostNotOpen) as caught:
                await use()
            said.append(str(caught.value))
        for read in (host.health, lambda: host.plugins, lambda: host.trail, lambda: host.find_turn("t")):
            with pytest.raises(HostNotOpen) as caught:
                read()
            said.append(str(caught.value))
        async with host:
            pass

    assert {NOT_OPEN} == set(said)


async def test_a_host_is_opened_once_at_a_time(make_host):
    """A second opening is refused, also during the first one; a closed host may be opened again."""
    plugin = RecordingPlugin()
    host = make_host({"p": plugin})
    results = await asyncio.gather(host.open(), host.open(), return_exceptions=True)
    with pytest.raises(HostNotOpen) as caught:
        await host.open()

    assert ([None, OPEN_ALREADY], OPEN_ALREADY) == ([each and str(each) for each in results], str(caught.value))
    await host.close()
    async with host:
        assert await (await host.open_turn("hello", session="s")).commit("bye")
    assert 2 == len(plugin.calls_of("stop"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"plugins": {"bad": FaultPlugin}}, PluginRefused),
        ({"plugins": {"good": RecordingPlugin(), "bad": object()}}, PluginRefused),
        ({"plugins": {"bad": FaultPlugin(Fault.RAISE, "start")}}, PluginFailed),
        ({"entry_points": ["no-such-plugin"]}, PluginMissing),
    ],
)
async def test_an_opening_that_fails_leaves_nothing(make_host, options, expected):
    """A failed opening leaves no thread or task, stops the started plugins, and can be repeated."""
    host = make_host(**options)
    before = asyncio.all_tasks()
    with pytest.raises(expected):
        await host.open()

    assert (set(), before) == (threads(), asyncio.all_tasks())
    for plugin in options.get("plugins", {}).values():
        if isinstance(plugin, RecordingPlugin):
            assert 1 == len(plugin.calls_of("stop"))
    with pytest.raises(expected):
        await host.open()
    with pytest.raises(HostNotOpen):
        host.health()


async def test_a_cancelled_opening_leaves_nothing(make_host):
    """A cancelled opening stops the started plugins, and the cancellation goes on."""
    good, bad = RecordingPlugin(), FaultPlugin(Fault.AWAIT_FOREVER, "start")
    host = make_host({"good": good, "bad": bad})
    opening = asyncio.create_task(host.open())
    await bad.wait_for("start")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await bad.ended()

    assert (1, set()) == (len(good.calls_of("stop")), threads())


async def test_a_setting_that_no_plugin_reads_fails_opening(tmp_path, make_host):
    """A configuration section for a missing plugin is an error that names it."""
    config = Config()
    config = attrs.evolve(config, plugins=attrs.evolve(config.plugins, sections={"nobody": {}}))
    with pytest.raises(ConfigurationError) as caught:
        await make_host(config=config).open()

    assert "plugins.nobody" == caught.value.path


# --- Where it may be used -------------------------------------------------------------------------------------


def test_another_loop_is_refused(make_host):
    """A host used from another loop, or without one, raises an error that names the remedy."""
    host = make_host()
    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    one.run_until_complete(host.open())
    said = []
    for use in (
        lambda: other.run_until_complete(host.open_turn("hello", session="s")),
        lambda: other.run_until_complete(host.close()),
        host.health,
    ):
        with pytest.raises(WrongLoop) as caught:
            use()
        said.append(str(caught.value))
    one.run_until_complete(host.close())
    one.run_until_complete(one.shutdown_default_executor())
    one.close()
    other.close()

    assert [OTHER_LOOP] * 3 == said


async def test_a_forked_child_is_refused(make_host):
    """Every call in a forked child tells it to open a new host; the parent's host works on."""
    host = make_host()
    async with host:
        said = [
            in_child(host.health),
            in_child(lambda: host.open().send(None)),
            in_child(lambda: host.open_turn("hello", session="s").send(None)),
        ]

        assert [f"{ForkedHost.__name__}: {FORKED}"] * 3 == said
        assert await (await host.open_turn("hello", session="s")).commit("bye")


def test_a_host_made_before_a_fork_can_be_opened_in_the_child(tmp_path):
    """A server that forks its workers may make the host first; only an open one is bound to its process."""
    source = """
        import asyncio, os, sys
        from beaver_hooks import Host

        host = Host(state_folder=sys.argv[1])

        async def use():
            async with host:
                turn = await host.open_turn("hello", session="s")
                return 7 if await turn.commit("bye") else 1

        child = os.fork()
        if not child:
            os._exit(asyncio.run(use()))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), str(tmp_path / ".beaver")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert ("7\n", "") == (done.stdout, done.stderr)


CLOSING = pytest.mark.parametrize(
    "use",
    [lambda turn: turn.commit("bye"), lambda turn: turn.drop(), lambda turn: turn.tool_result(tool="t", call_id="1")],
    ids=["commit", "drop", "tool_result"],
)


@CLOSING
async def test_a_turn_is_closed_where_its_host_is(make_host, use):
    """Another loop and a forked child are refused as by the host, and the turn stays open."""
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        turn = await host.open_turn("hello", session="s")

        def elsewhere():
            return asyncio.run(use(turn))

        with pytest.raises(WrongLoop) as caught:
            await asyncio.to_thread(elsewhere)

        assert f"{ForkedHost.__name__}: {FORKED}" == in_child(lambda: use(turn).send(None))
        assert (OTHER_LOOP, True) == (str(caught.value), await turn.commit("bye"))
    assert (1, 0) == (len(plugin.calls_of("after_prompt")), len(plugin.calls_of("on_tool_result")))


@CLOSING
async def test_a_turn_of_a_closed_host_says_so(make_host, use):
    """Closing a turn of a closed host raises, and no plugin learns of it, also when the host is open again."""
    host = make_host()
    async with host:
        turn = await host.open_turn("hello", session="s")
    with pytest.raises(HostNotOpen) as caught:
        await use(turn)
    async with host:
        with pytest.raises(HostNotOpen):
            await use(turn)

    assert NOT_OPEN == str(caught.value)


async def test_a_closing_host_is_not_opened_again(make_host):
    """A host cannot be opened while it closes, and can be opened once it is closed."""
    plugin = FaultPlugin(Fault.AWAIT_FOREVER, "stop")
    host = make_host({"p": plugin})
    await host.open()
    closing = asyncio.create_task(host.close())
    await plugin.wait_for("stop")
    with pytest.raises(HostNotOpen) as caught:
        await host.open()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await host.open()
    again = asyncio.create_task(host.close())
    await plugin.wait_for("stop", 2)
    again.cancel()
    await asyncio.wait({again})

    assert OPEN_ALREADY == str(caught.value)


# --- Plugins of a running host --------------------------------------------------------------------------------


async def test_plugins_come_and_go(make_host):
    """A registered plugin is found by its name, and is unknown after it is unregistered."""
    plugin = RecordingPlugin(info=PluginInfo(version="1", contract="1.0"))
    async with make_host() as host:
        await host.register("p", plugin)
        there = (host.plugins, host.plugin("p"))
        await host.unregister("p")
        with pytest.raises(UnknownPlugin) as caught:
            await host.unregister("p")
        with pytest.raises(UnknownPlugin):
            host.plugin("p")

        assert (({"p": plugin.info}, plugin), {}) == (there, host.plugins)
    assert ("no plugin named `p` is registered; registered: none", 1) == (
        str(caught.value),
        len(plugin.calls_of("stop")),
    )


async def test_a_plugin_registered_again_is_as_fail_closed_as_before(make_host, monkeypatch):
    """The memory mode and `Host(fail_closed=...)` decide at every registration, and not only when the host opens."""

    class Point:
        def load(self):
            return RecordingPlugin

    monkeypatch.setattr("beaver_hooks.runtime.installed", lambda: {"curated": Point()})
    async with make_host({"p": RecordingPlugin()}, entry_points=None, fail_closed=["p"]) as host:
        before = host.fail_closed
        for name in ("curated", "p"):
            await host.unregister(name)
            await host.register(name, RecordingPlugin())

        assert ({"curated", "p"}, {"curated", "p"}) == (before, host.fail_closed)


async def _run(*_):
    return "done"


async def test_tools_and_commands_are_offered_to_those_they_allow(make_host):
    """The host offers tools and commands to the turns and contexts that they allow, and refuses others."""

    def is_ann(caller):
        return caller.user == "ann"

    tool = Tool(name="recall", description="d", parameters={}, run=_run, allows=is_ann)
    command = Command(name="status", summary="s", run=_run, allows=is_ann)
    plugins = {"p": RecordingPlugin(tools=[tool], commands=[command]), "q": RecordingPlugin()}
    async with make_host(plugins) as host:
        for user, tools, commands in (("ann", (tool,), (command,)), ("bob", (), ()), (None, (), ())):
            turn = await host.open_turn("hello", session="s", user=user)
            for caller in (turn.turn, CommandContext(session="s", user=user)):
                assert ({"p": tools, "q": ()}, {"p": commands, "q": ()}) == (
                    host.offered_tools(caller),
                    host.offered_commands(caller),
                )
            await turn.drop()
        bob, said = CommandContext(user="bob", trust="inner"), []
        for call in (
            host.run_command("p", "status", (), bob),
            host.use_tool("recall", {}, session="s", user="bob", trust="inner"),
        ):
            with pytest.raises(NotAllowed) as caught:
                await call
            said.append((str(caught.value), caught.value.plugin))

    assert [
        ("the command `status` of the plugin `p` is not allowed for the trust `inner`", "p"),
        ("the tool `recall` of the plugin `p` is not allowed for the trust `inner`", "p"),
    ] == said


async def test_an_interruption_while_a_plugin_is_asked_for_whom_it_is(make_host):
    """A Ctrl-C inside `allows` ends the process and is not a refusal of the caller."""

    def interrupted(_caller):
        raise KeyboardInterrupt

    tool = Tool(name="recall", description="d", parameters={}, run=_run, allows=interrupted)
    async with make_host({"p": RecordingPlugin(tools=[tool])}) as host:
        with pytest.raises(KeyboardInterrupt):
            host.offered_tools(CommandContext())
        health = host.health()["p"].state

    assert "ok" == health


async def test_memory_is_switched_for_a_session_and_a_user(make_host, sink):
    """Memory is off exactly where it was switched off, and each switch is audited without a name."""
    asked = [("s", "ann"), ("t", "ann"), ("s", "bob"), ("s", None), (None, "ann")]
    seen = []
    async with make_host() as host:
        for on, session, user in ((False, "s", "ann"), (False, None, "ann"), (True, "s", "ann"), (True, None, "ann")):
            await host.switch_memory(on=on, session=session, user=user)
            seen.append([host.is_memory_off(session=each, user=who) for each, who in asked])

    assert [
        [True, False, False, False, False],
        [True, True, False, False, True],
        [True, True, False, False, True],
        [False] * 5,
    ] == seen
    events = [event for event in sink.events if event.name == "memory_switched"]
    assert [(False, False), (False, True), (True, False), (True, True)] == [
        (each.facts["on"], each.facts["whole_user"]) for each in events
    ]
    assert "ann" not in repr(events)


async def test_services_reach_the_plugins(make_host):
    """A plugin's setup has the host's services and no memory mode."""
    services, plugin = Services(small_model=object()), RecordingPlugin()
    async with make_host({"p": plugin}, services=services):
        (call,) = plugin.calls_of("configure")
        setup = call.arguments["setup"]

    assert (services, None, False) == (setup.services, setup.mode, setup.explicit)


async def test_turns_are_found_by_their_id(make_host):
    """A host that keeps ids alone tells of tool calls and closes turns by them; later calls change nothing."""
    plugin = RecordingPlugin()
    async with make_host({"p": plugin}) as host:
        for turn_id in ("one", "two"):
            turn = await host.open_turn("hello", session="s", id=turn_id)
            assert turn == host.find_turn(turn_id)
        done = [
            await host.tool_result("one", tool="t", call_id="1", error="no"),
            await host.commit("one", "bye"),
            await host.drop("two"),
            await host.tool_result("one", tool="t", call_id="2"),
            await host.commit("two", "bye"),
            await host.drop("one"),
        ]
        await host.drain()

    assert [True, True, True, False, False, False] == done
    assert ["error"] == [call.arguments["result"].outcome for call in plugin.calls_of("on_tool_result")]


@pytest.mark.parametrize(
    "use",
    [
        lambda host: host.find_turn(["CANARY"]),
        lambda host: host.tool_result(7, tool="t", call_id="1"),
        lambda host: host.commit(None, "bye"),
        lambda host: host.drop(b"CANARY"),
        lambda host: host.receipt({}),
        lambda host: host.open_turn("hello", session="s", supersedes=["CANARY"]),
    ],
)
async def test_an_id_that_is_no_text_is_refused(make_host, use):
    """A turn id that is no text is refused."""
    async with make_host() as host:
        with pytest.raises(InvalidTurn) as caught:
            await use(host)

    assert "the id of a turn must be a str" == str(caught.value)


@pytest.mark.parametrize("seconds", ["1", float("nan"), []])
async def test_draining_takes_a_number(make_host, seconds):
    """`drain` refuses a value that is no number of seconds, and takes a negative time as none."""
    async with make_host() as host:
        with pytest.raises(HostMisused) as caught:
            await host.drain(seconds)

        assert 0 == await host.drain(-1)
    assert str(caught.value).startswith("`seconds` takes a number of seconds; it was given a ")


@pytest.mark.shows("003-004", "003-034")
async def test_without_plugins_a_turn_is_given_nothing(make_host):
    """A host without plugins adds nothing to a turn, whatever was said and answered in its session before."""
    async with make_host() as host:
        await (await host.open_turn("My name is Ada.", session="s")).commit("Hello, Ada.")
        await host.drain()
        turn = await host.open_turn("What is my name?", session="s")

        assert ("What is my name?", "base", (), ()) == (
            turn.prompt,
            turn.system_prompt("base"),
            turn.references,
            turn.hints,
        )


async def test_the_base_of_a_system_prompt_is_text(make_host):
    """Anything else is refused without being shown."""
    async with make_host() as host:
        turn = await host.open_turn("hello", session="s")
        with pytest.raises(InvalidTurn) as caught:
            turn.system_prompt(["CANARY"])

    assert "the base of a system prompt must be a str" == str(caught.value)


async def test_any_thread_may_read_the_trail(make_host):
    """The host gives its trail to any thread, because the trail is safe to use from all of them."""
    async with make_host() as host:
        assert host.trail is await asyncio.to_thread(lambda: host.trail)


# --- The written record ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn_id", [None, "ada.lovelace-1"])
async def test_a_receipt_outlives_its_host(make_host, turn_id):
    """A receipt is found by the turn's id, which is stored as a hash if it could name a person."""
    fields = {"id": turn_id} if turn_id else {}
    plugin = RecordingPlugin(Contribution(references=(Reference(text="r", id="r1"),)))
    async with make_host({"p": plugin}) as host:
        turn = await host.open_turn("hello", session="s", **fields)
        await turn.commit("bye")
        await host.drain()
        kept = await host.receipt(turn.id)
    async with make_host() as host:
        later = await host.receipt(turn.id)
        nothing = await host.receipt("unknown")

    assert (kept, None) == (later, nothing)
    assert ("committed", ["r1"], is_ours(turn.id)) == (
        kept["state"],
        kept["plugins"]["p"]["injected"],
        kept["turn"] == turn.id,
    )
    assert "hello" not in json.dumps(kept)


async def test_without_a_trail_turns_go_on_and_the_host_says_so(make_host, tmp_path, capsys):
    """A state folder that cannot be made costs the trail and the receipts, and nothing else."""
    (tmp_path / "file").write_text("not a folder")
    async with make_host({"p": RecordingPlugin()}, state_folder=tmp_path / "file") as host:
        turn = await host.open_turn("hello", session="s")
        assert await turn.commit("bye")
        await host.drain()
        with pytest.raises(AuditUnavailable) as caught:
            await host.receipt(turn.id)

        assert ("degraded", "committed") == (host.health()["host"].state, turn.receipt.state)
    assert "the audit trail could not be opened; the host's health and log show why" == str(caught.value)


async def test_a_turn_has_an_id_and_a_time_of_its_own_accord(make_host):
    """The host fills in fields that the caller leaves out, and keeps given ones."""
    clock = FrozenClock()
    async with make_host(clock=clock) as host:
        one = await host.open_turn("hello", session="s")
        two = await host.open_turn("hello", session="s", id="mine", conversation="c", user="ada")

    assert (True, clock.now(), "s") == (is_ours(one.id), one.turn.when, one.turn.conversation)
    assert ("mine", "c", "ada") == (two.id, two.turn.conversation, two.turn.user)


@pytest.mark.shows("000-121")
async def test_the_boundary_is_random(make_host):
    """The fence around a turn's references is different for every turn."""
    plugin = RecordingPlugin(Contribution(references=(Reference(text="r"),)))
    async with make_host({"p": plugin}) as host:
        messages = {(await host.open_turn("hello", session="s")).references[0].text for _ in range(5)}

    assert 5 == len(messages)


# --- From a configuration -------------------------------------------------------------------------------------


async def test_a_host_comes_from_a_configuration(tmp_path, monkeypatch):
    """The file's settings, its mode and the folder it names are the host's; disabled plugins are never loaded."""
    monkeypatch.setattr("beaver_hooks.runtime.installed", dict)
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({"host": {"queueLimit": 7, "stateFolder": "state"}, "memory": {"mode": "curated"}}), "utf-8"
    )
    host = Host.from_config(path, environment={})

    with pytest.raises(PluginMissing) as caught:
        await host.open()
    assert ("curated", True) == (caught.value.plugin, (tmp_path / "state").is_dir())
    assert "the plugin `curated` is needed by the memory mode `curated`" in str(caught.value)


async def test_plugin_objects_join_those_of_a_configuration(tmp_path, monkeypatch):
    """A host from a file takes plugin objects too; its settings hold for them."""

    class Point:
        name = "curated"

        def load(self):
            return RecordingPlugin

    monkeypatch.setattr("beaver_hooks.runtime.installed", lambda: {"curated": Point()})
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"host": {"background": False, "stateFolder": "state"}}), "utf-8")
    plugin = RecordingPlugin()
    async with Host.from_config(str(path), environment={}, plugins={"mine": plugin}) as host:
        await (await host.open_turn("hello", session="s")).commit("bye")

        assert (["curated", "mine"], 1) == (list(host.plugins), len(plugin.calls_of("after_prompt")))


async def test_every_installed_plugin_is_loaded_when_none_is_named(make_host, monkeypatch):
    """Without names the memory mode decides; a fail-closed plugin that is missing is an error that lists the others."""

    class Point:
        def load(self):
            return RecordingPlugin

    monkeypatch.setattr("beaver_hooks.runtime.installed", lambda: {"curated": Point()})
    async with make_host(entry_points=None, fail_closed=["curated"]) as host:
        assert ["curated"] == list(host.plugins)
    with pytest.raises(UnknownPlugin) as caught:
        await make_host(entry_points=None, fail_closed=["nobody"]).open()

    assert "no plugin named `nobody` is registered; registered: curated" == str(caught.value)


async def test_the_trail_is_closed_without_threads_where_there_are_none(make_host, monkeypatch):
    """Without new threads at the end of the interpreter, the host still writes all events of the trail."""
    async with make_host() as host:
        await (await host.open_turn("hello", session="s")).commit("bye")
        monkeypatch.setattr("concurrent.futures.thread._shutdown", True)
    monkeypatch.undo()
    async with make_host() as host:
        assert ["turn_committed"] == [each.name for each in host.trail.tail()]


async def test_the_error_of_a_closing_trail_is_not_taken_for_a_missing_thread(make_host, monkeypatch):
    """A trail whose `close` raises a `RuntimeError` is closed once, and the error gets out."""
    closed, close = [], Trail.close

    def fail(trail):
        closed.append(close(trail))
        raise RuntimeError("mine")

    monkeypatch.setattr(Trail, "close", fail)
    host = make_host()
    await host.open()
    with pytest.raises(RuntimeError, match="mine"):
        await host.close()

    assert [0] == closed


async def test_settings_are_the_defaults(make_host):
    """A host without a configuration has the documented defaults."""
    async with make_host() as host:
        assert HostSettings() == host._running()._options.settings
