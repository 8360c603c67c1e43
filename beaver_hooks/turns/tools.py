"""Runs the tools that plugins offer to the model and the commands that they offer to the user.

They run as hooks do: in a task of their own, behind a deadline, cancelled and abandoned when it has passed. Unlike a
hook's failure, theirs is recorded and then raised to the caller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from beaver_hooks.plugins.hook_calls import Calls, Category, HookDeadlines, Result
from beaver_hooks.plugins.registry import Implementation, Member, Registry
from beaver_hooks.receipts.receipt_builder import ReceiptBuilder
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import HostReport
from beaver_hooks.turns.admission import Admission
from beaver_hooks.turns.lifecycle import Turns
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hooks.turns.results import ResultCheck
from beaver_hostspecs import (
    BeaverError,
    Caller,
    Clock,
    Command,
    CommandContext,
    InvalidTurn,
    NotOffered,
    PluginFailed,
    Tool,
    Turn,
    freeze,
)
from beaver_hostspecs.naming import type_name

EVENT = "tool_used"


@attrs.frozen(kw_only=True)
class Offers:
    """Runs the tools and commands of the registered plugins.

    Attributes:
        admission: decides who may use them.
        deadlines: how long a tool or a command may take.
    """

    registry: Registry
    recorder: Recorder
    calls: Calls
    admission: Admission
    deadlines: HookDeadlines

    def tools(self, caller: Caller) -> dict[str, tuple[Tool, ...]]:
        """Return the tools that a caller may use, by plugin."""
        _check_caller(caller)
        return {each.name: self.admission.allowed(each, each.tools, caller) for each in self.registry.members()}

    def commands(self, caller: Caller) -> dict[str, tuple[Command, ...]]:
        """Return the commands that a caller may use, by plugin."""
        _check_caller(caller)
        return {each.name: self.admission.allowed(each, each.commands, caller) for each in self.registry.members()}

    async def run_tool(self, opened: OpenTurn, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a plugin's tool within a turn, and return its result.

        Only plugins that were registered when the turn was opened, and still are, take part.

        Raises:
            NotAllowed: the caller of the turn may not use it.
        """
        self.admission.check_switch(opened.turn)
        member, tool = self._tool(opened, name)
        self.admission.check(member, tool, opened.turn)
        given = {"arguments": freeze(arguments), "turn": opened.turn}
        result = await self._run(member, f"tool:{name}", tool.run, given, opened.builder)
        ResultCheck(self.recorder).judge(result, result.category, opened.builder)
        if result.category is not None:
            raise _what_to_raise(result, result.category)
        return result.value

    async def run_command(self, plugin: str, name: str, words: tuple[str, ...], context: CommandContext) -> str:
        """Run a plugin's command, and return its text.

        Raises:
            NotAllowed: this caller may not use it.
        """
        member = self.registry.member(plugin)
        command = _command(member, name)
        self.admission.check(member, command, context)
        given = {"words": words, "context": context}
        result = await self._run(member, f"command:{name}", command.run, given, None)
        category = result.category or (None if type(result.value) is str else "wrong_type")
        self._judge_command(result, category)
        if category is not None:
            raise _what_to_raise(result, category)
        return str(result.value)

    def _tool(self, opened: OpenTurn, name: str) -> tuple[Member, Tool]:
        members = [each for each in opened.members if self.registry.holds(each)]
        found = {tool.name: (member, tool) for member in members for tool in member.tools}
        if name not in found:
            raise NotOffered(f"no plugin of this turn has such a tool; the tools are: {_listed(found)}")
        return found[name]

    async def _run(
        self,
        member: Member,
        hook: str,
        run: Callable[..., Awaitable[object]],
        given: Mapping[str, object],
        builder: ReceiptBuilder | None,
    ) -> Result:
        async def by_position(**wanted: object) -> object:
            # The contract defines the order of these arguments, not their names.
            return await run(*wanted.values())

        implementation = Implementation(hook=hook, member=member, function=by_position, arguments=(*given, "report"))
        report = HostReport(plugin=member.name, hook=hook, recorder=self.recorder, builder=builder)
        (result,) = await self.calls.settle(
            [self.calls.begin(implementation, given, report, seconds=self.deadlines.offer_seconds)],
        )
        return result

    def _judge_command(self, result: Result, category: Category | None) -> None:
        call = result.call
        if category == "raised" and isinstance(result.error, BeaverError):
            # A `BeaverError` is the command's answer, for example to a mistyped id, and no fault of the plugin.
            facts = {"error": type_name(result.error)}
            self.recorder.event("command_refused", facts, plugin=call.plugin, hook=call.hook)
        elif category is not None:
            self.recorder.failed(call.plugin, hook=call.hook, category=category, error=result.error)
        elif not (call.report.troubled or call.blocked):
            self.recorder.succeeded(call.plugin, source=call.hook)


def _check_caller(caller: object) -> None:
    if not isinstance(caller, Turn | CommandContext):
        raise InvalidTurn("`caller` must be a Turn or a CommandContext")


def _command(member: Member, name: str) -> Command:
    found = {command.name: command for command in member.commands}
    if name not in found:
        message = f"the plugin `{member.name}` has no such command; its commands are: {_listed(found)}"
        raise NotOffered(message, plugin=member.name)
    return found[name]


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _what_to_raise(result: Result, category: Category) -> Exception:
    """Return the plugin's own error unchanged, or a `PluginFailed`, for `SystemExit` too."""
    if isinstance(result.error, Exception):
        return result.error
    call = result.call
    kind = f" ({type_name(result.error)})" if result.error else ""
    message = (
        f"plugin `{call.plugin}` failed in {call.hook}: {category}{kind}; `beaver doctor` and `beaver audit tail`"
        " show the details"
    )
    return PluginFailed(message, plugin=call.plugin)


@attrs.frozen(kw_only=True)
class StandaloneTools:
    """The tools of the plugins that are in service."""

    turns: Turns
    offers: Offers
    recorder: Recorder
    clock: Clock

    async def use(self, turn: Turn, name: str, arguments: Mapping[str, Any]) -> object:
        """Run a tool and return its result; raises the errors of `Offers.run_tool`."""
        opened = self.turns.unentered(turn)
        builder = opened.builder
        given = freeze(arguments)
        owner = next((each for each in opened.members if any(tool.name == name for tool in each.tools)), None)
        ended = "failed"
        try:
            value = await self.offers.run_tool(opened, name, given)
            ended = "returned"
        except asyncio.CancelledError:
            ended = "cancelled"
            raise
        finally:
            # Later reports become audit events of their own.
            builder.closed = self.clock.now()
            if owner is not None:
                self._write_down(builder, owner.name, name, ended)
        return value

    def _write_down(self, builder: ReceiptBuilder, plugin: str, tool: str, ended: str) -> None:
        hook = f"tool:{tool}"
        facts = {"tool": tool, "ended": ended, **builder.plugins[plugin].facts(hook)}
        self.recorder.event(EVENT, facts, builder=builder, plugin=plugin, hook=hook)
