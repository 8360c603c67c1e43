"""Tools, in a turn and outside of one, and commands of plugins: run behind a deadline, with the turn and a report, their failures written down."""

import asyncio

import pytest

from beaver_hostspecs import (
    Command,
    CommandContext,
    HostNotOpen,
    NotOffered,
    PluginError,
    PluginFailed,
    Tool,
    TurnClosed,
    UnknownPlugin,
)
from beaver_hostspecs.testing import RecordingPlugin

SHORT = 0.01
CONTEXT = CommandContext(session="s", user="u")


def tool(run, name="recall"):
    return Tool(name=name, description="d", parameters={}, run=run)


def command(run, name="status"):
    return Command(name=name, summary="s", run=run)


def offering(run):
    """Return a plugin that offers `run` as a tool and as a command."""
    return RecordingPlugin(tools=[tool(run)], commands=[command(run)])


async def ask(host, kind):
    if kind == "tool":
        return await host.run_tool((await host.open_turn("hello", session="s")).id, "recall", {})
    if kind == "lone tool":
        return await host.use_tool("recall", {}, session="s")
    return await host.run_command("p", "status", ["a"], CONTEXT)


KINDS = pytest.mark.parametrize("kind", ["tool", "lone tool", "command"])
HOOKS = {"tool": "tool:recall", "lone tool": "tool:recall", "command": "command:status"}


def failures(sink, kind):
    return [
        (each.plugin, each.hook, each.facts["category"], each.facts["error"])
        for each in sink.events
        if each.name == "plugin_failed" and each.hook == HOOKS[kind]
    ]


def uses(kind, *ends):
    """Return how the audited uses of a kind end: only a tool outside of any turn has an event of its own."""
    return [*ends] if kind == "lone tool" else []


def used(sink):
    return [each.facts["ended"] for each in sink.named("tool_used")]


async def test_a_tool_gets_its_arguments_the_turn_and_a_report(make_host):
    """A tool gets read-only arguments, the turn and its report by position, whatever its parameters are called."""

    async def run(given, this, about):
        about.decision("recall", "ran", "it was asked for")
        return given, this, about.remaining() <= 5.0

    async with make_host({"p": RecordingPlugin(tools=[tool(run)])}) as host:
        turn = await host.open_turn("hello", session="s")
        given, this, in_time = await host.run_tool(turn.id, "recall", {"ids": [1]})
        receipt = turn.receipt.plugins["p"]

    assert ({"ids": (1,)}, turn.turn, True) == (dict(given), this, in_time)
    assert (["ran"], True) == ([each.verdict for each in receipt.decisions], "tool:recall" in receipt.milliseconds)


async def test_a_command_gets_its_words_its_context_and_a_report(make_host):
    """The user gets the command's answer."""

    async def run(words, context, report):
        report.event("looked", count=1)
        return f"{words} {context.user}"

    async with make_host({"p": RecordingPlugin(commands=[command(run)])}) as host:
        answer = await host.run_command("p", "status", ["a", "b"], CONTEXT)

    assert "('a', 'b') u" == answer


@KINDS
async def test_an_error_goes_to_the_caller_unchanged(make_host, sink, kind):
    """The error is audited, and the plugin is degraded until it succeeds again."""
    errors = [error := LookupError("nothing there")]

    async def run(*_):
        if errors:
            raise errors.pop()
        return "fine"

    async with make_host({"p": offering(run)}) as host:
        with pytest.raises(LookupError) as caught:
            await ask(host, kind)
        before = host.health()["p"].state
        answer = await ask(host, kind)
        after = host.health()["p"].state

    assert (error, "degraded", "fine", "ok") == (caught.value, before, answer, after)
    assert [("p", HOOKS[kind], "raised", "LookupError")] == failures(sink, kind)
    assert uses(kind, "failed", "returned") == used(sink)


@KINDS
@pytest.mark.parametrize(
    ("error", "category"), [(SystemExit(3), "raised (SystemExit)"), (asyncio.CancelledError(), "cancelled")]
)
async def test_what_nobody_should_raise_becomes_an_error_of_the_plugin(make_host, kind, error, category):
    """An error that ends a loop or cancels a task becomes the plugin's failure, and reaches neither loop nor caller."""

    async def run(*_):
        raise error

    async with make_host({"p": offering(run)}) as host:
        with pytest.raises(PluginFailed) as caught:
            await ask(host, kind)

    said = f"plugin `p` failed in {HOOKS[kind]}: {category}; `beaver doctor` and `beaver audit tail` show the details"
    assert (said, "p") == (str(caught.value), caught.value.plugin)


@KINDS
async def test_one_that_hangs_is_abandoned(make_host, sink, kind):
    """A hanging tool or command is cancelled at the deadline, and its clean-up is not waited for."""
    ended = asyncio.Event()

    async def run(*_):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with make_host({"p": offering(run)}, {"default_deadline_seconds": SHORT}) as host:
        with pytest.raises(PluginFailed):
            await ask(host, kind)
        await ended.wait()

    assert ([("p", HOOKS[kind], "timeout", None)], uses(kind, "failed")) == (failures(sink, kind), used(sink))


@KINDS
async def test_cancelling_the_caller_cancels_it(make_host, sink, kind):
    """A cancelled caller cancels the tool or command, and the plugin has no failure."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def run(*_):
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    async with make_host({"p": offering(run)}) as host:
        asking = asyncio.create_task(ask(host, kind))
        await started.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await ended.wait()
        state = host.health()["p"].state

    assert ("ok", [], uses(kind, "cancelled")) == (state, failures(sink, kind), used(sink))


async def test_a_command_must_answer_text(make_host, sink):
    """Anything else is a failure of the plugin."""

    async def run(*_):
        return 7

    async with make_host({"p": offering(run)}) as host:
        with pytest.raises(PluginFailed):
            await ask(host, "command")

    assert [("p", "command:status", "wrong_type", None)] == failures(sink, "command")


@KINDS
async def test_one_that_says_it_is_in_trouble_does_not_count_as_a_success(make_host, kind):
    """A tool or command that reports trouble leaves its plugin degraded although it answers."""

    async def run(_, __, report):
        report.degraded("remote_down")
        return "partly"

    async with make_host({"p": offering(run)}) as host:
        answer = await ask(host, kind)
        health = host.health()["p"]

    assert ("partly", "degraded") == (answer, health.state)


async def test_what_is_not_offered_is_named(make_host):
    """The error for an unknown tool or command lists the known ones."""

    async def run(*_):
        return ""

    said = []
    async with make_host({"p": offering(run), "q": RecordingPlugin()}) as host:
        turn = await host.open_turn("hello", session="s")
        for asked in (
            host.run_tool(turn.id, "forget", {}),
            host.run_command("p", "purge", (), CONTEXT),
            host.run_command("q", "purge", (), CONTEXT),
        ):
            with pytest.raises(NotOffered) as caught:
                await asked
            said.append((str(caught.value), caught.value.plugin))
        with pytest.raises(UnknownPlugin):
            await host.run_command("nobody", "status", (), CONTEXT)

    assert [
        ("no plugin of this turn has such a tool; the tools are: `recall`", ""),
        ("the plugin `p` has no such command; its commands are: `status`", "p"),
        ("the plugin `q` has no such command; its commands are: none", "q"),
    ] == said


async def test_only_plugins_of_the_turn_take_part(make_host):
    """A plugin registered after the opening, or unregistered since, offers no tool; a closed turn runs none."""

    async def run(*_):
        return "ran"

    async with make_host({}) as host:
        early = await host.open_turn("hello", session="s")
        await host.register("p", offering(run))
        turn = await host.open_turn("hello", session="s")
        ran = await host.run_tool(turn.id, "recall", {})
        with pytest.raises(NotOffered):
            await host.run_tool(early.id, "recall", {})
        await host.unregister("p")
        with pytest.raises(NotOffered):
            await host.run_tool(turn.id, "recall", {})
        await turn.drop()
        with pytest.raises(TurnClosed):
            await host.run_tool(turn.id, "recall", {})

    assert "ran" == ran


async def test_whoever_runs_the_host_can_append_events(make_host, sink):
    """Recorded events reach the audit trail like the host's own, and only while the host is open."""
    host = make_host({})
    async with host:
        host.record("tool_refused", plugin="p", loudly=True, tool="t")
    with pytest.raises(HostNotOpen):
        host.record("tool_refused")

    (event,) = [each for each in sink.events if each.name == "tool_refused"]
    assert ("p", {"tool": "t"}) == (event.plugin, dict(event.facts))


async def test_a_command_that_refuses_is_no_fault(make_host, sink):
    """An error of the tree from a command reaches the caller, is audited, and leaves the plugin well."""

    async def run(words, context, report):
        raise PluginError("there is no such entry")

    async with make_host({"p": RecordingPlugin(commands=[command(run)])}) as host:
        with pytest.raises(PluginError, match="there is no such entry"):
            await ask(host, "command")
        state = host.health()["p"].state

    assert ("ok", []) == (state, failures(sink, "command"))
    assert [("p", {"error": "PluginError"})] == [
        (each.plugin, dict(each.facts)) for each in sink.named("command_refused")
    ]
