"""Tools that are run outside of any turn, for hosts that only pull."""

import pytest

from beaver_hooks import SyncHost
from beaver_hooks.turns.fields import is_ours
from beaver_hostspecs import (
    Contribution,
    HostMisused,
    HostNotOpen,
    InvalidTurn,
    NotOffered,
    Reference,
    Scope,
    Tool,
    Trust,
    UnknownTurn,
)
from beaver_hostspecs.testing import COROUTINE_HOOKS, RecordingPlugin


def offering(run, name="recall", **more):
    return RecordingPlugin(tools=[Tool(name=name, description="d", parameters={}, run=run)], **more)


def used(sink):
    return [(each.plugin, each.hook, dict(each.facts)) for each in sink.events if each.name == "tool_used"]


def without_time(facts):
    return [
        (plugin, hook, {name: each for name, each in some.items() if name != "milliseconds"})
        for plugin, hook, some in facts
    ]


async def test_the_tool_gets_a_turn_with_what_the_host_knows(make_host):
    """The tool gets session, user, scope and trust, an empty prompt, and read-only arguments."""
    scope = Scope(project="p")

    async def run(arguments, turn, report):
        return dict(arguments), turn, report.remaining() <= 5.0

    async with make_host({"p": offering(run)}) as host:
        given, turn, in_time = await host.use_tool(
            "recall", {"ids": [1]}, session="s", user="u", scope=scope, trust="full"
        )

    assert ({"ids": (1,)}, True, True) == (given, in_time, is_ours(turn.id))
    said = (turn.session, turn.conversation, turn.user, turn.scope, turn.trust, turn.prompt)
    assert ("s", "s", "u", scope, Trust.FULL, "") == said


async def test_no_hook_hears_of_it(make_host, sink):
    """Nothing is opened, committed or dropped: not during the call, and not when the host closes."""
    seen = []

    async def run(_, turn, __):
        seen.append(turn.id)
        with pytest.raises(UnknownTurn):
            host.find_turn(turn.id)

    plugin = offering(run)
    async with make_host({"p": plugin}) as host:
        await host.use_tool("recall", {}, session="s")
        await host.drain()
        receipt = await host.receipt(seen[0])

    turns = [call.hook for call in plugin.calls if call.hook in COROUTINE_HOOKS]
    assert (["start", "stop"], None) == (turns, receipt)
    assert [] == [each.name for each in sink.events if each.name.startswith("turn_")]


async def test_what_the_tool_reports_is_one_event(make_host, sink):
    """A tool's outcomes, decisions, clips and candidates are one event without its arguments; its own events stay."""

    async def run(arguments, _, report):
        report.outcome("notes", "stored", text=arguments["text"])
        report.decision("privacy", "kept", arguments["text"])
        report.clipped("page", 1, 2)
        report.candidates([("a", 0.5), ("b", None)])
        report.event("looked", said=arguments["text"])

    async with make_host({"p": offering(run)}) as host:
        await host.use_tool("recall", {"text": "the key is under the mat"}, session="s")

    facts = {
        "tool": "recall",
        "ended": "returned",
        "outcomes": ["notes:stored"],
        "decisions": ["privacy:kept"],
        "clipped": ["page"],
        "considered": 2,
    }
    assert [("p", "tool:recall", facts)] == without_time(used(sink))
    assert "under the mat" not in repr(sink.events)
    assert ["looked"] == [each.name for each in sink.events if each.name == "looked"]


async def test_what_it_reports_too_late_is_an_event_of_its_own(make_host, sink):
    """A report after the answer is an event `late_report`."""
    reports = []

    async def run(_, __, report):
        reports.append(report)

    async with make_host({"p": offering(run)}) as host:
        await host.use_tool("recall", {}, session="s")
        reports[0].outcome("notes", "stored")

    assert ["outcome"] == [each.facts["said"] for each in sink.events if each.name == "late_report"]


async def test_plugins_that_come_and_go(make_host):
    """The tools are those of the plugins that are registered now; an unknown one lists them."""

    async def run(*_):
        return "fine"

    async with make_host({"p": offering(run)}) as host:
        await host.register("q", offering(run, name="other"))
        assert "fine" == await host.use_tool("other", {}, session="s")
        await host.unregister("q")
        with pytest.raises(NotOffered) as caught:
            await host.use_tool("other", {}, session="s")

    assert str(caught.value).endswith("the tools are: `recall`")


async def test_a_plugin_that_has_not_started_is_not_there_yet(make_host):
    """A plugin that has not started offers no tool, as in a turn."""

    async def run(*_):
        return "fine"

    plugin = offering(run)
    answer = plugin.answer

    async def starting(call):
        if call.hook == "start":
            with pytest.raises(NotOffered):
                await host.use_tool("recall", {}, session="s")
        return await answer(call)

    plugin.answer = starting
    async with make_host({}) as host:
        await host.register("p", plugin)
        assert "fine" == await host.use_tool("recall", {}, session="s")


async def test_what_was_injected_in_the_session_is_known(make_host):
    """A tool recognises a text that a turn of the same session injected."""
    text = "the release of the new gateway is on Thursday at noon"

    async def run(arguments, turn, _):
        return turn.was_injected(arguments["text"])

    plugin = offering(run, contribution=Contribution(references=[Reference(kind="fact", id="f", text=text)]))
    async with make_host({"p": plugin}) as host:
        async with host.turn("when?", session="s") as turn:
            await turn.commit("soon")
        same = await host.use_tool("recall", {"text": text}, session="s")
        other = await host.use_tool("recall", {"text": text}, session="t")

    assert (True, False) == (same, other)


@pytest.mark.parametrize(
    ("arguments", "fields", "error"),
    [
        ({}, {"session": ""}, InvalidTurn),
        ({}, {"session": "s", "user": ""}, InvalidTurn),
        ({}, {"session": "s", "trust": "total"}, InvalidTurn),
        ({}, {"session": "s", "nonsense": 1}, InvalidTurn),
        ([], {"session": "s"}, HostMisused),
    ],
)
async def test_misuse_is_refused(make_host, arguments, fields, error):
    """`use_tool` refuses wrong arguments with the same errors as `open_turn` and `run_tool`."""
    async with make_host({}) as host:
        with pytest.raises(error):
            await host.use_tool("recall", arguments, **fields)


async def test_a_host_that_is_not_open_runs_nothing(make_host):
    """A tool of a host that is not open raises `HostNotOpen`."""
    with pytest.raises(HostNotOpen):
        await make_host({}).use_tool("recall", {}, session="s")


async def test_deep_arguments_are_looked_through(make_host, sink):
    """Nested arguments are as private as those on the top level, and bytes and numbers are no texts."""

    async def run(arguments, _, report):
        report.event("looked", said=arguments["a"][0]["b"])

    async with make_host({"p": offering(run)}) as host:
        await host.use_tool("recall", {"a": [{"b": "under the blue mat"}], "n": 1}, session="s")

    assert "blue mat" not in repr(sink.events)


def test_without_an_event_loop(make_host):
    """`SyncHost` does the same."""

    async def run(_, turn, __):
        return turn.session, turn.user

    with SyncHost(make_host({"p": offering(run)})) as host:
        assert ("s", "u") == host.use_tool("recall", {}, session="s", user="u")


async def test_an_id_of_the_hosts_own_is_not_recorded(make_host, sink):
    """The event names the turn by a keyed hash, where its id could name a person."""

    async def run(_, turn, __):
        return turn.id

    async with make_host({"p": offering(run)}) as host:
        assert "anna-1" == await host.use_tool("recall", {}, session="s", id="anna-1")

    assert "anna-1" not in repr(sink.events)
