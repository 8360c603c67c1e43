"""Turns of every shape: the plugin keeps the contract in all of them, and works for the next one."""

import asyncio
from collections.abc import Sequence

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import QUESTION, Driven, demand, need, started, teach, texts_of
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.neutralising import neutralise
from beaver_hostspecs.testing import make_answer, make_tool_result
from beaver_hostspecs.testing.factories import NOON
from beaver_hostspecs.turns import (
    Actors,
    DropReason,
    HostRef,
    Message,
    RegisteredTool,
    Scope,
    ToolRegistry,
    ToolResult,
    Trust,
    Turn,
)

STRANGE = (
    "",
    " \t\n",
    "a long day at the weir. " * 50_000,
    "\x00\x07\x1b[31m\u202e\u2066 turned around",
    "a lone \ud83d and another \udc00 surrogate",
    "no-breaks" * 10_000,
    "%s {0} {} \\ ' \" ; -- <b> ${x} ../../etc",
    "\U0001f9a9 e\u0301\u200d\u200d " * 500,
)
"""Unusual prompts, answers and outputs that users and tools will send."""

RESULTS = (
    make_tool_result(),
    make_tool_result(call_id="call-2", outcome="error", output=None, error="no such file"),
    make_tool_result(call_id="call-3", private=True, output={"password": "open sesame"}),
    make_tool_result(call_id="call-4", external=True, output=["a page", {"of": "the web"}, None, 1.5, True]),
    make_tool_result(call_id="call-5", output=None, arguments={}, summary="nothing", registry="registry-1"),
    make_tool_result(call_id="call-6", output="x" * 1_000_000, arguments={"nested": [{"a": {"b": []}}]}),
    make_tool_result(call_id="call-7", outcome="error", error="it failed half way", output={"half": object()}),
)


async def _ordinary(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for number in range(3):
            await driven.run(f"{QUESTION} I ask for the {number + 1}. time.")
        await teach(harness, driven, "Ardea")
        await driven.run(QUESTION, session="session-2")


async def _renders(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await teach(harness, driven, "Ardea")
        contribution = await driven.ask(QUESTION)
        need(harness, "recalls")
        shown = [text for text in texts_of(contribution) if neutralise(text).strip()]
        demand(shown, "it contributes nothing that could be shown, and its card says that it recalls")


async def _tools(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await driven.run(QUESTION, results=RESULTS)
        turn = driven.turn_of(QUESTION)
        await driven.before(turn)
        await driven.result(turn, RESULTS[0])
        await driven.drop(turn)
        await _works(driven)


async def _dropped(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for reason in DropReason:
            turn = driven.turn_of(f"{QUESTION} It ends as {reason}.")
            await driven.before(turn)
            await driven.drop(turn, reason)
        await _works(driven)


async def _side_by_side(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        sessions = ["session-1", "session-1", "session-1", "session-2", "session-3"]
        turns = [driven.turn_of(f"{QUESTION} Number {n}.", session=each) for n, each in enumerate(sessions)]
        await asyncio.gather(*(driven.before(turn) for turn in turns))
        await asyncio.gather(*(driven.result(turn, RESULTS[0]) for turn in turns))
        *committed, dropped = turns
        await asyncio.gather(*(driven.after(turn) for turn in committed), driven.drop(dropped))
        await _works(driven)


async def _bare(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        turn = Turn(session="session-1", id="turn-bare", prompt=QUESTION, when=NOON)
        await driven.before(turn)
        await driven.result(turn, ToolResult(call_id="call-1", tool="read_file"))
        await driven.after(turn)
        await driven.drop(Turn(session="session-1", id="turn-bare-2", prompt=QUESTION, when=NOON))


async def _full(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for trust in Trust:
            turn = driven.turn_of(QUESTION, **{**_everything(), "trust": trust})
            await driven.before(turn)
            await driven.result(turn, RESULTS[0])
            said = [Message(role="user", text=QUESTION), Message(role="assistant", text="Yes.", when=NOON)]
            await driven.after(turn, make_answer(messages=said, stored=True))


async def _strange(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for text in STRANGE:
            result = make_tool_result(output=text, arguments={"text": text}, error=text or None)
            await driven.run(text, answer=text, results=(result,), user=text if text.strip() else None)
        await _works(driven)


async def _loose_ends(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        await driven.after(driven.turn_of("It was open before the plugin came."))
        await driven.drop(driven.turn_of("So was this one."))
        await driven.result(driven.turn_of("And this one."), RESULTS[0])
        await _late(driven)
        await _works(driven)


async def _late(driven: Driven) -> None:
    """Report a tool call and the end once more after the end."""
    turn = driven.turn_of(QUESTION)
    await driven.before(turn)
    await driven.drop(turn, DropReason.ABANDONED)
    await driven.result(turn, RESULTS[0])
    await driven.drop(turn, DropReason.FAILED)


async def _works(driven: Driven, sessions: Sequence[str] = ("session-1", "session-9")) -> None:
    """Demand that the next turn works as in a fresh plugin."""
    for session in sessions:
        await driven.run(QUESTION, session=session)


def _everything() -> dict[str, object]:
    tool = RegisteredTool(id="read_file", fingerprint="f-1", tags=("read",))
    return {
        "conversation": "conversation-1",
        "user": "user-1",
        "history": (Message(role="user", text="Earlier."), Message(role="assistant", text="Yes.", id="m-2", when=NOON)),
        "scope": Scope(tenant="tenant-1", project="project-1", agent="agent-1", channel="channel-1"),
        "actors": Actors(speaker="user-1", speaker_kind="human", subject="user-2", agent="agent-1", trigger="timer"),
        "refs": (HostRef(kind="ticket", id="ticket-1", label="The weir", relation="about", views=("team",)),),
        "registry": ToolRegistry(id="registry-1", fingerprint="r-1", tools=(tool,)),
        "budget": 100,
        "was_injected": lambda _: True,
    }


CASES: tuple[Case[PluginHarness], ...] = (
    Case(name="ordinary turns", shows="Several turns of a session, and of another one, end well.", run=_ordinary),
    Case(
        name="contributions can be shown",
        shows="What it contributes is a Contribution that can be rendered, with something to see in it.",
        flags=("recalls",),
        run=_renders,
    ),
    Case(
        name="tools of every kind",
        shows="Tools that succeed, fail, are private, external, empty or huge end no turn badly.",
        run=_tools,
    ),
    Case(name="dropped turns", shows="A turn may be dropped for every reason.", run=_dropped),
    Case(name="turns side by side", shows="Turns of one session, and of several, run at once.", run=_side_by_side),
    Case(name="bare turn", shows="A turn with the four required fields is enough.", run=_bare),
    Case(name="full turn", shows="So is one with every field, at each level of trust.", run=_full),
    Case(
        name="strange texts",
        shows="Empty and huge texts, control characters and lone surrogates are texts too.",
        run=_strange,
    ),
    Case(
        name="loose ends",
        shows="Turns that began without it, and calls that come late, do no harm.",
        run=_loose_ends,
    ),
)
