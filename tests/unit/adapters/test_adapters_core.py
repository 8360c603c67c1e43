import asyncio
import gc
import logging
import threading
from uuid import UUID

import attrs
import pytest

from beaver_hooks import Host, SyncHost
from beaver_hooks.adapters.core import Adapter, user_in
from beaver_hooks.config import Config, HostSettings
from beaver_hostspecs import (
    DropReason,
    HostMisused,
    HostNotOpen,
    InvalidTurn,
    Message,
    Scope,
    Tool,
    Trust,
    WrongLoop,
)
from beaver_hostspecs.testing import Fault, FaultError, FaultPlugin, RecordingPlugin, make_canary


def calls(plugin, hook, argument):
    return [call.arguments[argument] for call in plugin.calls_of(hook)]


async def look(arguments, turn, report):
    if arguments["what"] == "trouble":
        raise RuntimeError("nothing there")
    return {"found": arguments["what"], "in": turn.session}


LOOK = Tool(
    name="look",
    description="Look.",
    parameters={"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    run=look,
)


@pytest.fixture
async def plugin():
    return RecordingPlugin(tools=[LOOK])


@pytest.fixture
async def host(plugin, tmp_path):
    async with Host({"p": plugin}, state_folder=tmp_path) as host:
        yield host


@pytest.fixture
def sync_host(tmp_path):
    plugin = RecordingPlugin(tools=[LOOK])
    with SyncHost({"p": plugin}, state_folder=tmp_path) as host:
        yield host, plugin


async def test_what_the_framework_says_wins(host, plugin):
    """Session, user and history of the framework win; the adapter's own defaults fill in the rest."""
    adapter = Adapter(host, session="mine", user="me", trust="full", scope=Scope(project="p"), budget=7)

    await adapter.open("One.")
    await adapter.open("Two.", session="theirs", user="them", history=[("user", "a"), ("tool", "b"), ("assistant", "")])

    one, two = calls(plugin, "before_prompt", "turn")
    assert ("mine", "me", Trust.FULL, Scope(project="p"), 7, ()) == (
        one.session, one.user, one.trust, one.scope, one.budget, one.history,
    )  # fmt: skip
    assert ("theirs", "them", (Message(role="user", text="a"),)) == (two.session, two.user, two.history)


async def test_without_a_session_each_run_is_one(host, plugin):
    """Two runs without a session get two sessions, each named after its turn."""
    adapter = Adapter(host)
    first, second = await adapter.open("One."), await adapter.open("Two.")

    assert [f"run-{first.id}", f"run-{second.id}"] == [each.session for each in calls(plugin, "before_prompt", "turn")]


async def test_a_prompt_that_no_provider_takes(host, plugin):
    """The adapter replaces NUL and lone surrogates in the prompt and in the history."""
    await Adapter(host).open("a\0b\ud800", history=[("user", "\ud800")])

    (turn,) = calls(plugin, "before_prompt", "turn")
    assert ("a�b�", "�") == (turn.prompt, turn.history[0].text)


async def test_tool_results_are_told_as_text(host, plugin):
    """A plugin sees a tool's output as text, an exception as its type, and a plugin tool's failure as its text."""
    turn = await Adapter(host).open("Go.")
    ring = []
    ring.append(ring)

    for output in ("text", {"a": [1]}, object, ring):
        await turn.tool_result("t", call_id="c", arguments={"x": 1}, output=output, seconds=2)
    await turn.tool_result("t", error=ValueError("a secret"), output="gone")
    await turn.tool_result("t", output="[tool error] t: no")
    await turn.tool_result("", error="it said no")
    await host.drain()

    told = calls(plugin, "on_tool_result", "result")
    outputs = ["text", '{"a":[1]}', str(object), str(ring)]
    assert [*outputs, None, None, None] == [each.output for each in told]
    assert [None] * 4 + ["ValueError", "[tool error] t: no", "it said no"] == [each.error for each in told]
    assert ("t", "c", {"x": 1}, 2.0) == (
        told[0].tool,
        told[0].call_id,
        told[0].arguments,
        told[0].duration.total_seconds(),
    )
    assert ("nameless", "nameless") == (told[-1].tool, told[-1].call_id)


async def test_a_plugins_tool(host):
    """A tool runs within its turn with arguments as an object or as JSON, and returns a failure as marked text."""
    adapter = Adapter(host)
    turn = await adapter.open("Go.", session="s")

    assert ["look"] == [tool.name for tool in adapter.tools]
    assert adapter.tools == await adapter.offered_tools(turn)
    assert '{"found":"x","in":"s"}' == await turn.run_tool("look", {"what": "x"})
    assert '{"found":"y","in":"s"}' == await turn.run_tool("look", '{"what": "y"}', call_id="c")
    assert "[tool error] look: RuntimeError: nothing there" == await turn.run_tool("look", {"what": "trouble"})
    assert "[tool error] look: what: 1 is not of type 'string'" == await turn.run_tool("look", {"what": 1})
    assert (await turn.run_tool("gone", {})).startswith("[tool error] gone: there is no such tool")


@pytest.mark.parametrize("in_loop", [True, False])
async def test_tools_are_those_of_the_caller(tmp_path, in_loop):
    """Tools before a run suit the adapter's user and trust, those in a run suit its turn; others are refused."""
    tools = [
        Tool(name="look", description="", parameters={}, run=_look),
        Tool(name="write", description="", parameters={}, run=_look, allows=lambda caller: caller.trust is Trust.FULL),
        Tool(name="own", description="", parameters={}, run=_look, allows=lambda caller: caller.user == "ann"),
    ]
    inner = Host({"p": RecordingPlugin(tools=tools)}, state_folder=tmp_path / "s", environment={})
    host = inner if in_loop else SyncHost(inner)
    await (host.open() if in_loop else asyncio.to_thread(host.open))
    seen, answers = [], []
    try:
        for defaults, more in (({}, {}), ({"trust": "full"}, {}), ({"user": "ann"}, {"user": "bob"})):
            adapter = Adapter(host, **defaults)
            turn = await adapter.open("Go.", session="s", **more)
            seen += [[each.name for each in offered] for offered in (adapter.tools, await adapter.offered_tools(turn))]
            answers.append([(await turn.run_tool(name, {})).partition(":")[0] for name in ("look", "write", "own")])
            await turn.drop(DropReason.CANCELLED)
        await inner.switch_memory(on=False, session="s") if in_loop else host.switch_memory(on=False, session="s")
        off = await adapter.offered_tools(await Adapter(host).open("Go.", session="s"))
    finally:
        await (host.close() if in_loop else asyncio.to_thread(host.close))

    refused = "[tool error] {}".format
    assert [["look"], ["look"], ["look", "write"], ["look", "write"], ["look", "own"], ["look"]] == seen
    assert (["looked", refused("write"), refused("own")], ()) == (answers[0], off)
    assert [["looked", "looked", refused("own")], answers[0]] == answers[1:]


async def _look(arguments, turn, report):
    return "looked"


async def test_an_answer_is_committed_once(host, plugin):
    """Only the first of several endings of a turn counts."""
    turn = await Adapter(host).open("Go.")

    await turn.commit("Gone.\0")
    await turn.commit("Again.")
    await turn.drop()
    await host.drain()

    assert ["Gone.�"] == [each.text for each in calls(plugin, "after_prompt", "answer")]
    assert [] == calls(plugin, "on_turn_dropped", "reason")


async def test_nothing_is_no_answer(host, plugin):
    """A blank answer drops the turn, so no plugin learns from it."""
    await (await Adapter(host).open("Go.")).commit(" \n")
    await host.drain()

    assert [DropReason.FAILED] == calls(plugin, "on_turn_dropped", "reason")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (asyncio.CancelledError(), DropReason.CANCELLED),
        (GeneratorExit(), DropReason.CANCELLED),
        (KeyboardInterrupt(), DropReason.CANCELLED),
        (ValueError(), DropReason.FAILED),
        (DropReason.BLOCKED, DropReason.BLOCKED),
    ],
)
async def test_why_it_was_dropped(host, plugin, error, reason):
    """The error that ends a turn, or the reason that the caller gives, decides the reason of the drop."""
    await (await Adapter(host).open("Go.")).drop(error)
    await host.drain()

    assert [reason] == calls(plugin, "on_turn_dropped", "reason")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(None, DropReason.ABANDONED), (ValueError(), DropReason.FAILED), (asyncio.CancelledError(), DropReason.CANCELLED)],
)
async def test_a_turn_that_is_let_go_is_dropped(host, plugin, error, reason):
    """A turn that the framework forgets is dropped, for the reason that the adapter saw last."""
    turn = await Adapter(host).open("Go.")
    if error is not None:
        turn.may_fail(error)
    del turn
    gc.collect()
    await plugin.wait_for("on_turn_dropped")

    assert [reason] == calls(plugin, "on_turn_dropped", "reason")


async def test_a_committed_turn_may_be_let_go(host, plugin):
    """A committed turn stays committed when the framework forgets it."""
    await (await Adapter(host).open("Go.")).commit("Gone.")
    gc.collect()
    await host.drain()

    assert [] == calls(plugin, "on_turn_dropped", "reason")


@pytest.mark.parametrize("in_loop", [True, False])
def test_letting_go_after_the_host_is_closed_harms_nobody(tmp_path, in_loop):
    """A turn that the framework forgets after the host, or its loop too, closed raises nothing: it was abandoned."""
    plugin, held = RecordingPlugin(), []

    async def leave_open():
        async with Host({"p": plugin}, state_folder=tmp_path) as host:
            held.append(await Adapter(host).open("Go."))
        if in_loop:
            held.clear()
            gc.collect()
            await asyncio.sleep(0)

    asyncio.run(leave_open())
    held.clear()
    gc.collect()

    assert [DropReason.ABANDONED] == calls(plugin, "on_turn_dropped", "reason")


def test_a_sync_host_is_reached_from_every_loop(sync_host):
    """One event loop opens a turn, a second one reports a tool's result, and a caller without a loop commits it."""
    host, plugin = sync_host
    adapter = Adapter(host)

    turn = asyncio.run(adapter.open("Go.", session="s"))
    asyncio.run(turn.tool_result("t", output="out"))
    assert '{"found":"x","in":"s"}' == turn.run_tool_now("look", {"what": "x"})
    turn.commit_now("Gone.")
    host.drain()

    assert ["before_prompt", "on_tool_result", "after_prompt"] == [each.hook for each in plugin.calls][-3:]
    assert ["look"] == [tool.name for tool in adapter.tools]


def test_a_turn_without_a_loop(sync_host):
    """A caller without an event loop opens a turn, reports a tool's result and drops the turn."""
    host, plugin = sync_host
    adapter = Adapter(host)

    turn = adapter.open_now("Go.")
    turn.tool_result_now("t", output="out")
    turn.drop_now(ValueError())
    host.drain()

    assert ["out"] == [each.output for each in calls(plugin, "on_tool_result", "result")]
    assert [DropReason.FAILED] == calls(plugin, "on_turn_dropped", "reason")


def test_a_turn_that_is_let_go_in_another_thread(sync_host):
    """A turn is dropped also where the last reference to it goes away in another thread."""
    host, plugin = sync_host
    held = [Adapter(host).open_now("Go.")]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    asyncio.run(plugin.wait_for("on_turn_dropped"))

    assert [DropReason.ABANDONED] == calls(plugin, "on_turn_dropped", "reason")


async def test_cancelling_a_caller_in_another_loop_drops_the_turn(tmp_path):
    """A caller that is cancelled while the host asks its plugins leaves no open turn."""
    slow = FaultPlugin(Fault.AWAIT_FOREVER, "before_prompt")
    host = SyncHost({"slow": slow}, state_folder=tmp_path)
    with host:
        task = asyncio.create_task(Adapter(host).open("Go."))
        await slow.wait_for("before_prompt")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await slow.wait_for("on_turn_dropped")
        await slow.release()

    assert [DropReason.CANCELLED] == calls(slow, "on_turn_dropped", "reason")


async def test_what_a_fail_closed_plugin_raises_comes_out(tmp_path):
    """`open` raises the error of a fail-closed plugin unchanged."""
    faulty = FaultPlugin(Fault.RAISE, "before_prompt")
    async with Host({"f": faulty}, fail_closed=["f"], state_folder=tmp_path) as host:
        with pytest.raises(FaultError):
            await Adapter(host).open("Go.")


async def test_a_host_that_is_closed_meanwhile(tmp_path, caplog):
    """A tool's result and an answer for a closed host are logged without content, and raise nothing."""
    canary = make_canary()
    async with Host({}, state_folder=tmp_path) as host:
        turn = await Adapter(host).open("Go.")
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        await turn.tool_result("t", output=canary.reveal())
        await turn.commit(canary.reveal())

    said = [record.getMessage() for record in caplog.records]
    assert ["tool_result", "commit"] == [line.split("what=")[1].split()[0] for line in said]
    canary.assert_clean("".join(said))


def test_a_sync_host_that_is_closed_meanwhile(tmp_path, caplog):
    """Without an event loop too a closed host logs results and endings; opening a turn raises `HostNotOpen`."""
    with SyncHost({}, state_folder=tmp_path) as host:
        adapter = Adapter(host)
        turn = adapter.open_now("Go.")
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        turn.tool_result_now("t")
        turn.drop_now()
        asyncio.run(turn.commit("Gone."))

    assert 3 == len(caplog.records)
    with pytest.raises(HostNotOpen):
        adapter.open_now("Again.")
    with pytest.raises(HostNotOpen):
        asyncio.run(adapter.open("Again."))


async def test_a_plugins_tool_of_a_closed_host(tmp_path, caplog):
    """The model reads that the tool is out of service, with an event loop and without one; the log has the cause."""
    told = "[tool error] look: it is out of service"
    async with Host({}, state_folder=tmp_path / "a") as host:
        turn = await Adapter(host).open("Go.")
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        assert told == await turn.run_tool("look", {})
    with SyncHost({}, state_folder=tmp_path / "b") as sync_host:
        other = await Adapter(sync_host).open("Go.")
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        assert [told, told] == [await other.run_tool("look", {}), other.run_tool_now("look", {})]

    assert 3 == sum("not open" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("waits", [True, False], ids=["with a loop", "without one"])
async def test_a_sync_host_that_is_closed_while_a_tool_runs(tmp_path, waits):
    """Closing the host ends a running tool with a text for the model, and does not cancel the caller."""
    loop, runs = asyncio.get_running_loop(), asyncio.Event()

    async def hang(arguments, turn, report):
        loop.call_soon_threadsafe(runs.set)
        await asyncio.Event().wait()

    plugin = RecordingPlugin(tools=[Tool(name="hang", description="Hang.", parameters={}, run=hang)])
    config = Config(host=HostSettings(default_deadline_seconds=0.2))
    host = SyncHost({"p": plugin}, config=config, state_folder=tmp_path)
    await asyncio.to_thread(host.open)
    turn = await Adapter(host).open("Go.")
    running = turn.run_tool("hang", {}) if waits else asyncio.to_thread(turn.run_tool_now, "hang", {})
    task = asyncio.create_task(running)
    await runs.wait()
    await asyncio.to_thread(host.close)

    assert (await task).startswith("[tool error] hang: ")


@pytest.mark.parametrize("waits", [True, False], ids=["with a loop", "without one"])
async def test_a_sync_host_that_is_closed_while_it_is_asked(tmp_path, waits):
    """Closing the host makes a waiting `open` raise `HostNotOpen` instead of a cancellation."""
    slow = FaultPlugin(Fault.AWAIT_FOREVER, "before_prompt")
    host = SyncHost({"slow": slow}, state_folder=tmp_path)
    await asyncio.to_thread(host.open)
    adapter = Adapter(host)
    opening = adapter.open("Go.") if waits else asyncio.to_thread(adapter.open_now, "Go.")
    task = asyncio.create_task(opening)
    await slow.wait_for("before_prompt")
    await asyncio.to_thread(host.close)

    with pytest.raises(HostNotOpen, match="closed"):
        await task
    await slow.release()


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ({"sesion": "s"}, r"has no option `sesion` \(did you mean `session`"),
        ({"x": 1}, "has no option `x`; the options are `session`, `user`, `trust`, `scope`, `budget`"),
        ({"trust": "most"}, "not a valid Trust"),
        ({"budget": "7"}, "budget must be a number"),
        ({"session": 7}, "session must be a non-empty str"),
    ],
)
async def test_defaults_that_cannot_work(host, defaults, said):
    """The adapter refuses wrong defaults when it is made, not at the first turn of a user."""
    with pytest.raises(HostMisused, match=said):
        Adapter(host, **defaults)


async def test_defaults_that_say_nothing(host, plugin):
    """A default of `None` means the same as no default."""
    turn = await Adapter(host, session=None, user=None, trust=None, scope=None).open("Go.")

    (seen,) = calls(plugin, "before_prompt", "turn")
    assert (f"run-{turn.id}", None, Trust.PUBLIC, Scope()) == (seen.session, seen.user, seen.trust, seen.scope)


@pytest.mark.parametrize("name", ["session", "user"])
@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
async def test_a_blank_id_is_refused(host, plugin, name, blank):
    """The adapter refuses a blank default when it is made, and the host refuses a framework's blank id in a turn."""
    with pytest.raises(HostMisused, match=f"{name} must be a"):
        Adapter(host, **{name: blank})
    with pytest.raises(InvalidTurn, match=f"{name} must be a"):
        await Adapter(host, session="mine", user="mine").open("Go.", **{name: blank})

    assert [] == calls(plugin, "before_prompt", "turn")


ID = UUID(int=7)


@pytest.mark.parametrize(("given", "seen"), [("u", "u"), (7, "7"), (ID, str(ID)), (None, "mine"), (object(), "mine")])
async def test_ids_are_not_always_text(host, plugin, given, seen):
    """A number or a UUID becomes an id as text; an object without a text of its own leaves the default."""
    await Adapter(host, session="mine", user="mine").open("Go.", session=given, user=given)

    (turn,) = calls(plugin, "before_prompt", "turn")
    assert (seen, seen) == (turn.session, turn.user)


async def test_an_id_that_is_none_is_logged(host, caplog):
    """The adapter logs an id that it cannot use, because the turn then runs without that user."""
    with caplog.at_level(logging.WARNING, "beaver_hooks"):
        await Adapter(host).open("Go.", user=object())

    assert ["user"] == [record.getMessage().split("what=")[1].split()[0] for record in caplog.records]


@attrs.frozen
class Person:
    user_id: object


@pytest.mark.parametrize(
    ("places", "user"),
    [
        (({"user_id": "a"}, Person("b")), "a"),
        ((None, {}, {"user_id": None}, Person("b")), "b"),
        ((None, {}, {"user_id": ""}, Person("b")), ""),
        ((Person(7),), 7),
        ((None, {"user": "a"}), None),
    ],
)
def test_the_user_in_places_of_a_framework(places, user):
    """The first place that has a user wins, also with a blank name: the host refuses that turn later."""
    assert user == user_in(*places)


async def test_a_cancelled_drop(tmp_path):
    """A task that is cancelled while it drops a turn still drops it, for the given reason."""
    plugin = RecordingPlugin()
    host = SyncHost({"p": plugin}, state_folder=tmp_path)
    with host:
        turn = await Adapter(host).open("Go.")
        task = asyncio.create_task(turn.drop(DropReason.BLOCKED))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del turn, task
        gc.collect()
        await plugin.wait_for("on_turn_dropped")

    assert [DropReason.BLOCKED] == calls(plugin, "on_turn_dropped", "reason")


async def test_an_answer_that_is_no_text(host, plugin):
    """An answer that is an object becomes JSON; an answer of `None` drops the turn."""
    adapter = Adapter(host)
    await (await adapter.open("Go.")).commit({"day": "Thursday"})
    await (await adapter.open("Go.")).commit(None)
    await host.drain()

    assert ['{"day":"Thursday"}'] == [each.text for each in calls(plugin, "after_prompt", "answer")]
    assert [DropReason.FAILED] == calls(plugin, "on_turn_dropped", "reason")


async def test_what_cannot_work_is_said(tmp_path):
    """No host, a host that needs a loop, and a host of another loop: each error names the remedy."""
    with pytest.raises(HostMisused, match=r"takes a Host or a SyncHost"):
        Adapter("host")
    async with Host({}, state_folder=tmp_path) as host:
        with pytest.raises(HostMisused, match="give the adapter a SyncHost"):
            Adapter(host).open_now("Go.")
        with pytest.raises(WrongLoop, match="SyncHost"):
            await asyncio.to_thread(lambda: asyncio.run(Adapter(host).open("Go.")))


async def test_being_cancelled_while_telling_is_being_cancelled(tmp_path):
    """The adapter does not swallow the cancellation of a task that commits a turn."""
    config_waits = FaultPlugin(Fault.AWAIT_FOREVER, "after_prompt")
    config = Config(host=HostSettings(background=False))
    async with Host({"w": config_waits}, config=config, state_folder=tmp_path) as host:
        turn = await Adapter(host).open("Go.")
        task = asyncio.create_task(turn.commit("Gone."))
        await config_waits.wait_for("after_prompt")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await config_waits.release()
