"""Turns with an answer: the host reports each once, completely and in order."""

import asyncio

import attrs

from beaver_hostspecs.conformance.cases import Case, require
from beaver_hostspecs.conformance.harness import BROKEN, ECHO, Ask, CallTool, HostHarness, Say
from beaver_hostspecs.conformance.hosts.scenes import (
    ANSWER,
    ECHOED,
    PROMPT,
    demand,
    same,
    simple,
    ways,
    with_probe,
    with_tool,
)
from beaver_hostspecs.conformance.probes import PROBE_TOOL


async def _normal(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    same(ANSWER, await harness.run(simple()), "the answer")
    await harness.settle()
    same(("before_prompt", "after_prompt"), probe.told, "the hooks")
    (turn,), (answer,) = probe.turns, probe.answers
    same((PROMPT, "session-1"), (turn.prompt, turn.session), "prompt and session")
    same(ANSWER, answer.text, "the answer that is learned from")


async def _user(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    await harness.run(simple(user="user-7"))
    require(harness.card, "has_user_id")
    same("user-7", probe.turns[0].user, "the user")


async def _tool_turn(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    same(ANSWER, await harness.run(with_tool()), "the answer")
    await harness.settle()
    same(1, len(probe.turns), "how often plugins were asked")
    same(1, len(probe.answers), "how often they were told the answer")
    require(harness.card, "sees_tools")
    same(("before_prompt", "on_tool_result", "after_prompt"), probe.told, "the hooks")
    (result,) = probe.results
    same((ECHO, "success", None), (result.tool, result.outcome, result.error), "the tool result")
    same({"text": ECHOED}, dict(result.arguments), "its arguments")
    demand(ECHOED in str(result.output), f"the output of the tool is not told: {result.output!r}")


async def _tool_error(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    steps = (CallTool(tool=BROKEN), Say(text=ANSWER))
    answered = await harness.run(Ask(prompt=PROMPT, steps=steps))
    await harness.settle()
    same(ANSWER, answered, "the answer")
    require(harness.card, "sees_tools", "sees_tool_errors")
    (result,) = probe.results
    same((BROKEN, "error"), (result.tool, result.outcome), "the tool result")
    demand(result.error, "an outcome `error` says nothing about what went wrong")
    same(("before_prompt", "on_tool_result", "after_prompt"), probe.told, "the hooks")


async def _plugin_tool(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    require(harness.card, "offers_tools")
    steps = (CallTool(tool=PROBE_TOOL, arguments={"query": "thursday"}), Say(text=ANSWER))
    same(ANSWER, await harness.run(Ask(prompt=PROMPT, steps=steps)), "the answer")
    await harness.settle()
    offered = {ECHO, BROKEN, PROBE_TOOL}
    same(offered, offered & set(harness.calls[0].tools), "the tools that are offered")
    require(harness.card, "sees_tools")
    (result,) = probe.results
    same((PROBE_TOOL, "success"), (result.tool, result.outcome), "the tool result")
    demand("found thursday in session-1" in str(result.output), f"the tool did not run in its turn: {result.output!r}")


async def _plugin_tool_misused(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    require(harness.card, "offers_tools")
    steps = (CallTool(tool=PROBE_TOOL, arguments={"wrong": 1}), Say(text=ANSWER))
    same(ANSWER, await harness.run(Ask(prompt=PROMPT, steps=steps)), "the answer")
    await harness.settle()
    same(1, len(probe.answers), "how often the plugins were told the answer")


async def _stream(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    same(ANSWER, await harness.run(simple(way="stream")), "the answer")
    await harness.settle()
    same(("before_prompt", "after_prompt"), probe.told, "the hooks")
    same(ANSWER, probe.answers[0].text, "the answer that is learned from")


async def _stream_with_tool(harness: HostHarness) -> None:
    require(harness.card, "streaming")
    probe = await with_probe(harness)
    await harness.run(with_tool(way="stream"))
    await harness.settle()
    same((1, 1, ()), (len(probe.turns), len(probe.answers), probe.reasons), "turns, answers and drops")
    demand(probe.answers[0].text.endswith(ANSWER), f"the answer is not learned from: {probe.answers[0].text!r}")
    require(harness.card, "sees_tools")
    same(("before_prompt", "on_tool_result", "after_prompt"), probe.told, "the hooks")


async def _sync(harness: HostHarness) -> None:
    require(harness.card, "sync")
    probe = await with_probe(harness)
    same(ANSWER, await harness.run(simple(way="sync")), "the answer")
    await harness.settle()
    same(("before_prompt", "after_prompt"), probe.told, "the hooks")
    same(ANSWER, probe.answers[0].text, "the answer that is learned from")


async def _sync_with_tool(harness: HostHarness) -> None:
    require(harness.card, "sync")
    probe = await with_probe(harness)
    same(ANSWER, await harness.run(with_tool(way="sync")), "the answer")
    await harness.settle()
    require(harness.card, "sees_tools")
    same(("before_prompt", "on_tool_result", "after_prompt"), probe.told, "the hooks")


async def _side_by_side(harness: HostHarness) -> None:
    require(harness.card, "parallel")
    probe = await with_probe(harness)
    sessions = {f"session-{letter}": f"I answer {letter}." for letter in "abcd"}
    asks = [
        with_tool(f"I ask in {each}.", answer, echoed=f"echo in {each}", session=each, user=f"user of {each}")
        for each, answer in sessions.items()
    ]
    same(list(sessions.values()), await asyncio.gather(*map(harness.run, asks)), "the answers")
    asks.append(attrs.evolve(asks[0], prompt="I ask again in session-a."))  # with the history of its session alone
    same(sessions["session-a"], await harness.run(asks[-1]), "the answer to the next prompt of a session")
    await harness.settle()
    same(
        {(ask.session, ask.prompt) for ask in asks}, {(each.session, each.prompt) for each in probe.turns}, "the turns"
    )
    for end in probe.calls_of("after_prompt"):
        turn, answer = end.arguments["turn"], end.arguments["answer"]
        same(sessions[turn.session], answer.text, f"what is learned in {turn.session}")  # type: ignore[attr-defined]
    for call in harness.calls:
        heard = [each for each in sessions if any(f"in {each}" in message.text for message in call.messages)]
        same(1, len(heard), "the sessions that one model call shows")
    if harness.card.has_user_id:
        same({ask.session: ask.user for ask in asks}, {each.session: each.user for each in probe.turns}, "who speaks")
    if harness.card.sees_tools:
        ran = [(each.arguments["turn"], each.arguments["result"]) for each in probe.calls_of("on_tool_result")]
        told = {(turn.session, result.arguments["text"]) for turn, result in ran}  # type: ignore[attr-defined]
        same({(each, f"echo in {each}") for each in sessions}, told, "the tools that ran")


async def _exactly_once(harness: HostHarness) -> None:
    probe = await with_probe(harness)
    asked = ways(harness.card) * 2
    for number, way in enumerate(asked):
        await harness.run(with_tool(f"Prompt {number}.", f"Answer {number}.", call=f"call-{number}", way=way))
    await harness.settle()
    same([("after_prompt",)] * len(asked), list(probe.endings().values()), "how each turn ended")
    same([f"Answer {number}." for number in range(len(asked))], [each.text for each in probe.answers], "the answers")


CASES: tuple[Case[HostHarness], ...] = (
    Case(name="normal", shows="A turn is asked for and committed once, with its answer.", run=_normal),
    Case(name="user", shows="Plugins get the user id.", flags=("has_user_id",), run=_user),
    Case(
        name="tool turn",
        shows="A tool call is reported, between question and answer.",
        flags=("sees_tools",),
        run=_tool_turn,
    ),
    Case(
        name="tool error",
        shows="A tool that fails is reported as failing.",
        flags=("sees_tools", "sees_tool_errors"),
        run=_tool_error,
    ),
    Case(
        name="plugin's tool",
        shows="The model is offered the tools of plugins, and they run in its turn.",
        flags=("offers_tools", "sees_tools"),
        run=_plugin_tool,
    ),
    Case(
        name="plugin's tool, misused",
        shows="Wrong arguments for a plugin's tool cost the turn nothing.",
        flags=("offers_tools",),
        run=_plugin_tool_misused,
    ),
    Case(
        name="full stream",
        shows="A streamed answer is committed once it is complete.",
        flags=("streaming",),
        run=_stream,
    ),
    Case(
        name="stream with a tool",
        shows="So is one with tool calls.",
        flags=("streaming", "sees_tools"),
        run=_stream_with_tool,
    ),
    Case(name="sync entry point", shows="Callers without an event loop get the same turn.", flags=("sync",), run=_sync),
    Case(
        name="sync with a tool",
        shows="So they do with tool calls.",
        flags=("sync", "sees_tools"),
        run=_sync_with_tool,
    ),
    Case(
        name="sessions side by side",
        shows="Turns of several sessions at once are kept apart.",
        flags=("parallel",),
        run=_side_by_side,
    ),
    Case(name="commit exactly once", shows="Whatever its shape, a turn is committed exactly once.", run=_exactly_once),
)
