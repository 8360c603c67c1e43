"""Cases about tools and commands: a model may send any arguments, a user may type any words."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import product
from typing import Any

from beaver_hostspecs.conformance.cases import Case
from beaver_hostspecs.conformance.plugins.driver import (
    DEFAULT_SECONDS,
    QUESTION,
    Driven,
    Ended,
    demand,
    need,
    outcome,
    same,
    started,
)
from beaver_hostspecs.conformance.plugins.harness import PluginHarness
from beaver_hostspecs.freezing import freeze
from beaver_hostspecs.plugins import Caller, Command, CommandContext, Tool
from beaver_hostspecs.turns import Trust

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that every provider accepts."""

GARBAGE: tuple[Any, ...] = (None, "", "x" * 100_000, "\ud800 \x00", -1, 10**30, float("nan"), True, [], [[None]], {})
WORDS: tuple[tuple[str, ...], ...] = (
    (),
    ("",),
    ("--help",),
    ("\ud800", "\x00"),
    ("../../x", "'; --"),
    ("a",) * 200,
    ("x" * 100_000,),
)


CALLERS = (CommandContext(), CommandContext(session="session-1", user="user-1", trust=Trust.FULL))
"""A caller with the least trust, and one with full trust."""


def tool_tries(driven: Driven) -> Iterator[tuple[str, Awaitable[object]]]:
    """Yield calls of every tool by the callers that it allows, with any arguments; each begins when it is awaited."""
    for tool in driven.tools:
        for number, (arguments, caller) in enumerate(product(_arguments(tool), CALLERS)):
            turn = driven.turn_of(QUESTION, user=caller.user, trust=caller.trust)
            if _allows(tool, turn):
                call = _awaited(tool.run, freeze(arguments), turn, driven.report())
                yield f"tool `{tool.name}`, try {number}", call


def command_tries(driven: Driven) -> Iterator[tuple[str, Awaitable[object]]]:
    """Yield calls of every command by the callers that it allows, with any words; each begins when it is awaited."""
    for command in driven.commands:
        for number, (words, caller) in enumerate(product(WORDS, CALLERS)):
            if _allows(command, caller):
                yield f"command `{command.name}`, try {number}", _awaited(command.run, words, caller, driven.report())


def _allows(offer: Tool | Command, caller: Caller) -> bool:
    """Whether a caller may use a tool or a command; a host runs it for allowed callers only."""
    try:
        answer = offer.allows(caller)
    except BaseException as error:
        # An uncaught `SystemExit` would end the examination.
        raise AssertionError(f"`allows` of `{offer.name}` raised {type(error).__name__}: {error}") from error
    demand(isinstance(answer, bool), f"`allows` of `{offer.name}` answered {type(answer).__name__}, not bool")
    return answer


async def _schemas(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for tool in driven.tools:
            _is_offered_well(tool)
        names = [tool.name for tool in driven.tools]
        same(sorted(set(names)), sorted(names), "the names of its tools")
        need(harness, "offers_tools")
        demand(driven.tools, "the card says that it offers tools, and it offers none")


def _is_offered_well(tool: Tool) -> None:
    demand(NAME.fullmatch(tool.name), f"`{tool.name}` is no name for a tool; letters, digits, - and _, at most 64")
    demand(tool.description.strip(), f"the tool `{tool.name}` does not say what it does")
    schema = _as_json(tool)
    parameters = schema["parameters"]
    demand(isinstance(parameters, dict), f"the parameters of `{tool.name}` are no object")
    same("object", parameters.get("type"), f"the type of the parameters of `{tool.name}`")
    properties = parameters.get("properties", {})
    demand(isinstance(properties, dict), f"the properties of `{tool.name}` are no object")
    required = parameters.get("required", [])
    demand(isinstance(required, list), f"`required` of `{tool.name}` is no list")
    demand(set(required) <= set(properties), f"`{tool.name}` requires what it does not describe")


def _as_json(tool: Tool) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = json.loads(json.dumps(tool.schema, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the schema of `{tool.name}` is no JSON: {error}") from error
    return schema


async def _tools(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for what, call in tool_tries(driven):
            await _answers_or_raises(what, call)
        await driven.run(QUESTION)
    need(harness, "offers_tools")


async def _commands(harness: PluginHarness) -> None:
    await harness.open()
    async with started(harness) as driven:
        for what, call in command_tries(driven):
            answer = await _answers_or_raises(what, call)
            demand(isinstance(answer, str), f"{what} answered {type(answer).__name__}, not str")
        await driven.run(QUESTION)
        need(harness, "offers_commands")
        demand(driven.commands, "the card says that it offers commands, and it offers none")


async def _answers_or_raises(what: str, call: Awaitable[object]) -> object:
    """Return the answer of a call, or the text of its error."""
    try:
        return await outcome(DEFAULT_SECONDS, call, what)
    except Ended as ended:
        name = type(ended.error).__name__
        demand(isinstance(ended.error, Exception), f"{what} raised {name}, which is no Exception")
        return str(ended.error)


async def _awaited(run: Callable[..., Awaitable[object]], *given: object) -> object:
    return await run(*given)


def _arguments(tool: Tool) -> Iterator[Mapping[str, Any]]:
    properties = tool.parameters.get("properties")
    names = [*properties] if isinstance(properties, Mapping) else []
    yield {}
    yield {"no_such_argument": 1}
    for value in GARBAGE:
        yield dict.fromkeys(names, value)
    for name in names:
        yield {name: "x"}
        yield {name: [{"deep": [{"deeper": {}}]}]}


CASES: tuple[Case[PluginHarness], ...] = (
    Case(
        name="tools have a schema",
        shows="Each tool has a name, a description and a JSON Schema of an object.",
        flags=("offers_tools",),
        run=_schemas,
    ),
    Case(
        name="tools take garbage",
        shows="A tool with wrong arguments answers or raises an Exception, in time, and the next turn works.",
        flags=("offers_tools",),
        run=_tools,
    ),
    Case(
        name="commands take garbage",
        shows="A command with wrong words answers a text or raises an Exception, in time.",
        flags=("offers_commands",),
        run=_commands,
    ),
)
