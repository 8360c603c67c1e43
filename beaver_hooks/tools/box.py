"""Offers tools to the model and runs its calls. No failure of a tool is raised."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from time import perf_counter
from typing import Any

import attrs

from beaver_hooks.config.paths import did_you_mean
from beaver_hooks.host import Host
from beaver_hooks.tools.arguments import BrokenSchemaError, UnfitArgumentsError, check_arguments, parse_arguments
from beaver_hooks.tools.outcomes import (
    BuiltInTool,
    ToolCall,
    ToolOutcome,
    describe_error,
    one_line,
    render_error,
    render_output,
)
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import Caller, Tool, thaw
from beaver_hostspecs.naming import type_name

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The tool names that providers accept; they refuse every request with another name."""

OUTPUT_CHARACTERS = 20_000
SECONDS = 30.0
MOST_CALLS = 64
"""The most calls in one round; a model that asks for more is in error."""

AnyTool = BuiltInTool | Tool


class ToolBox:
    """The built-in tools and those of the plugins that are registered now.

    A plugin's tool is refused, with one loud log entry, if a built-in tool has its name, if providers do not accept its
    name, or if its parameters are not a JSON object.

    Args:
        host: runs the plugins' tools.
        built_in: the agent's own tools; their names are reserved.
        output_characters: the most characters of a tool's output that the model gets.
        seconds: the time limit of a built-in tool; the host has its own deadline for those of plugins.
    """

    def __init__(
        self,
        host: Host,
        built_in: Iterable[BuiltInTool] = (),
        *,
        output_characters: int = OUTPUT_CHARACTERS,
        seconds: float = SECONDS,
    ) -> None:
        self._host = host
        self._built_in = {tool.name: tool for tool in built_in}
        self._characters = output_characters
        self._seconds = seconds
        self._refused: set[tuple[str, str, str]] = set()

    def schemas(self, caller: OpenTurn | Caller) -> tuple[dict[str, Any], ...]:
        """Return the tools for the provider: name, description and parameters of each."""
        return tuple(_with_parameters(tool.schema) for tool in self.offered(caller).values())

    def offered(self, caller: OpenTurn | Caller) -> dict[str, AnyTool]:
        """Return the tools that a caller may use, by name, the built-in ones first; in a turn, of its plugins."""
        members = {member.name for member in caller.members} if isinstance(caller, OpenTurn) else None
        who: Caller = caller.turn if isinstance(caller, OpenTurn) else caller
        offered: dict[str, AnyTool] = dict(self._built_in_for(who))
        refused: set[tuple[str, str, str]] = set()
        for plugin, tools in self._host.offered_tools(who).items():
            for tool in tools if members is None or plugin in members else ():
                if fault := self._fault(tool):
                    refused.add((plugin, tool.name, fault))
                else:
                    offered[tool.name] = tool
        self._say(refused)
        return offered

    def _built_in_for(self, caller: Caller) -> Iterator[tuple[str, BuiltInTool]]:
        off = self._host.is_memory_off(session=caller.session, user=caller.user)
        for name, tool in self._built_in.items():
            if tool.allows(caller) and not (tool.remembers and off):
                yield name, tool

    async def run_all(self, calls: Sequence[ToolCall], turn: OpenTurn) -> tuple[ToolOutcome, ...]:
        """Run calls in parallel; the outcomes are in the order of the calls. Only cancellation is raised."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.run(call, turn)) for call in calls[:MOST_CALLS]]
        beyond = (_failed(call, f"only {MOST_CALLS} calls are run in one round") for call in calls[MOST_CALLS:])
        return (*(task.result() for task in tasks), *beyond)

    async def run(self, call: ToolCall, turn: OpenTurn) -> ToolOutcome:
        """Run one call. Every failure but cancellation is an outcome."""
        started = perf_counter()
        outcome = await self._attempt(call, turn)
        return attrs.evolve(outcome, duration=timedelta(seconds=perf_counter() - started))

    async def _attempt(self, call: ToolCall, turn: OpenTurn) -> ToolOutcome:
        offered = self.offered(turn)
        tool = offered.get(call.name)
        if tool is None:
            return _failed(
                call, f"there is no such tool{did_you_mean(call.name, offered)}; the tools are: {_names(offered)}"
            )
        try:
            arguments = parse_arguments(call.arguments)
            check_arguments(arguments, tool.parameters)
        except UnfitArgumentsError as error:
            return _failed(call, str(error))
        except BrokenSchemaError as error:
            self._host.record("tool_schema_broken", plugin=self._owner(tool), loudly=True, tool=tool.name)
            return _failed(call, str(error))
        return await self._run(call, tool, arguments, turn)

    async def _run(self, call: ToolCall, tool: AnyTool, arguments: dict[str, Any], turn: OpenTurn) -> ToolOutcome:
        # The host records errors of a plugin's tool; this class records those of a built-in one.
        ours = isinstance(tool, BuiltInTool)
        try:
            value = await self._call(tool, arguments, turn)
            ours = True
            outcome = ToolOutcome(call=call, text=render_output(value, characters=self._characters))
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            outcome = _failed(call, "it was cancelled")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the model gets every error as text
            outcome = _failed(call, describe_error(error))
            if ours:
                self._tell_failed(tool, error)
        outcome = attrs.evolve(outcome, arguments=arguments)
        if isinstance(tool, BuiltInTool):
            return attrs.evolve(outcome, external=tool.external, private=tool.private)
        return outcome

    def _tell_failed(self, tool: AnyTool, error: BaseException) -> None:
        self._host.record("tool_failed", plugin=self._owner(tool), loudly=True, tool=tool.name, error=type_name(error))

    async def _call(self, tool: AnyTool, arguments: dict[str, Any], turn: OpenTurn) -> object:
        if not isinstance(tool, BuiltInTool):
            return await self._host.run_tool(turn.id, tool.name, arguments)
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await tool.run(arguments, turn.turn)
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"it took longer than {self._seconds:g} seconds") from None
            raise

    def _owner(self, tool: AnyTool) -> str | None:
        return next((name for name, tools in self._host.tools.items() if any(each is tool for each in tools)), None)

    def _fault(self, tool: Tool) -> str | None:
        if tool.name in self._built_in:
            return "reserved_name"
        if NAME.fullmatch(tool.name) is None:
            return "unusable_name"
        return None if _is_object(tool.parameters) else "unusable_parameters"

    def _say(self, refused: set[tuple[str, str, str]]) -> None:
        """Record the newly refused tools."""
        fresh = refused - self._refused
        self._refused = refused
        for plugin, name, fault in sorted(fresh):
            self._host.record("tool_refused", plugin=plugin, loudly=True, tool=name, why=fault)


def _with_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's schema with explicit parameters, which some providers require of a tool without any."""
    return {**schema, "parameters": schema["parameters"] or {"type": "object", "properties": {}}}


def _is_object(parameters: object) -> bool:
    """Whether a provider can take the parameters."""
    if not isinstance(parameters, Mapping):
        return False
    try:
        json.dumps(thaw(parameters), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def is_being_cancelled() -> bool:
    """Whether this task is being cancelled, as opposed to a tool that raises `CancelledError` itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(call: ToolCall, problem: str) -> ToolOutcome:
    return ToolOutcome(call=call, text=render_error(call.name, problem), error=problem)


def _names(offered: Iterable[str]) -> str:
    return one_line(", ".join(f"`{name}`" for name in offered)) or "none"
