"""Memory for agents of pydantic-ai, majors 1 and 2, as a capability.

    agent = Agent("openai:gpt-5", capabilities=[BeaverMemory(host, trust="full")])

The session is the run's `conversation_id`: the passed one, else that of the message history, else a new one.
The user is `user_id` in the run's `metadata`, else in its `deps` (a mapping's key or an attribute).

The framework forces these choices:

- A tool that raises an error other than `ModelRetry` ends the run. This is pydantic-ai's rule; plugins get both kinds.
- A run that stops for deferred tools or an approval has no answer yet: its turn is dropped. The run that resumes it is
  a turn of its own, with the same prompt.
- Major 1 always makes up a conversation where none is named, so the default `session` needs major 2.
- With server-side history (OpenAI's `previous_response_id`) the provider keeps all input, references too.
"""

import copy
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self, Unpack

from pydantic_ai import output as outputs
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ContentFilterError, SkipToolExecution
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturn,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema
from typing_extensions import override

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults, OfferedTool, user_in
from beaver_hooks.host import Host
from beaver_hooks.sync import SyncHost
from beaver_hostspecs import DropReason, HostMisused
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="pydantic-ai",
    notes={"announces_compaction": "Capabilities and processors that shorten the history tell no other capability."},
)

UNANSWERED = (DeferredToolRequests, getattr(outputs, "PendingModelResponse", DeferredToolRequests))
"""Outputs that are no answer yet."""

MAJOR_1 = not hasattr(AbstractCapability, "prepare_model_request")
"""Whether this is major 1: it calls `after_run` and `on_run_error` after the end of `wrap_run`, major 2 within."""


class BeaverMemory(AbstractCapability[Any]):
    """Gives an agent's runs the memory of a host's plugins. One may serve several agents.

    Args:
        host: an open `SyncHost`, or an open `Host` for runs in its event loop.
        **defaults: fields of every turn that the run leaves open.

    Raises:
        HostMisused: an argument is invalid.
    """

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        self._session = defaults.get("session")
        if MAJOR_1 and self._session:
            raise HostMisused("pydantic-ai 1 names a conversation for every run; pass `conversation_id` to the run")
        self._adapter = Adapter(host, **defaults)
        self._turn: AdapterTurn | None = None
        self._tools: tuple[OfferedTool, ...] = ()

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        """Return `None`: the capability cannot be written to a file."""
        return None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        """Make it outermost: other capabilities may still refuse the answer, and change results of tools."""
        return CapabilityOrdering(position="outermost")

    @override
    def get_default_conversation_id(self, run_id: str) -> str | None:
        """Return the default session, for runs that name no conversation."""
        return self._session

    @override
    async def for_run(self, ctx: RunContext[Any]) -> Self:
        """Return a copy that holds the turn of this run only."""
        return copy.copy(self)

    # --- From the prompt to the answer --------------------------------------------------------------------------

    @override
    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Open the turn, and close it as the run ends."""
        await self._open(ctx)
        try:
            result = await handler()
        except BaseException as error:
            # In major 1 other capabilities may still recover the run from an error.
            await self._failed(error, for_good=not (MAJOR_1 and isinstance(error, Exception)))
            raise
        if MAJOR_1 and self._turn is not None:
            self._turn.may_fail(RuntimeError("another capability refuses the answer"))
        elif not MAJOR_1:
            await self._answered(result.output)
        return result

    @override
    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Commit, in major 1: all other capabilities have seen the answer."""
        if MAJOR_1:
            await self._answered(result.output)
        return result

    @override
    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Drop the turn, in major 1: no other capability has recovered the run."""
        if MAJOR_1:
            await self._failed(error, for_good=True)
        raise error

    async def _open(self, ctx: RunContext[Any]) -> None:
        prompt, history = _prompt_and_history(ctx)
        self._turn = await self._adapter.open(
            prompt, session=ctx.conversation_id, user=user_in(ctx.metadata, ctx.deps), history=_spoken(history)
        )
        self._tools = await self._adapter.offered_tools(self._turn)

    async def _answered(self, output: object) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if isinstance(output, UNANSWERED):
            await turn.drop(DropReason.ABANDONED)
        else:
            await turn.commit(output)

    async def _failed(self, error: BaseException, *, for_good: bool) -> None:
        turn = self._turn
        if turn is None:
            return
        if for_good:
            self._turn = None
            await turn.drop(DropReason.BLOCKED if isinstance(error, ContentFilterError) else error)
        else:
            turn.may_fail(error)

    # --- Requests to the model ----------------------------------------------------------------------------------

    @override
    def get_instructions(self) -> Callable[[], str]:
        """Return a function that returns the rules and blocks of the run's turn."""
        return self._instructions

    @override
    async def prepare_model_request(
        self,
        ctx: RunContext[Any],
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Put the references into the request, in major 2: a change here does not enter the history."""
        return replace(request_context, messages=self._with_references(request_context.messages))

    @override
    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        """Put the references into the request, in major 1; in major 2 this runs before the history is rewritten."""
        if not MAJOR_1:
            return await handler(request_context)
        # In the same object: another capability may put another model into it, and later hooks read it from there.
        messages = request_context.messages
        request_context.messages = self._with_references(messages)
        try:
            return await handler(request_context)
        finally:
            request_context.messages = messages

    @override
    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Offer the plugins' tools beside the agent's own."""
        return _WithPluginTools(toolset, self)

    def offers(self) -> tuple[AdapterTurn | None, tuple[OfferedTool, ...]]:
        """Return the turn of this run, and the tools to offer in it."""
        return self._turn, self._tools

    @override
    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Report the result of a tool call to the plugins."""
        started = perf_counter()
        told: dict[str, Any] = {}
        try:
            value = await handler(args)
        except (CallDeferred, ApprovalRequired):
            raise  # it has not run
        except SkipToolExecution as skipped:
            told["output"] = _plain(skipped.result)
            raise
        except Exception as error:
            told["error"] = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise
        else:
            told["output"] = _plain(value)
            return value
        finally:
            if told and self._turn is not None:
                seconds = perf_counter() - started
                given = args if isinstance(args, dict) else {}
                await self._turn.tool_result(
                    call.tool_name, call_id=call.tool_call_id, arguments=given, seconds=seconds, **told
                )

    def _instructions(self) -> str:
        return "" if self._turn is None else self._turn.system_prompt()

    def _with_references(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return the messages with the references before the history, in a copy of the first request."""
        recalled = [] if self._turn is None else [UserPromptPart(text) for text in self._turn.references]
        first = messages[0] if messages else None
        if not recalled:
            return list(messages)
        if not isinstance(first, ModelRequest):
            return [ModelRequest(parts=recalled), *messages]
        # Not a request of its own: some providers require alternating roles.
        base = [part for part in first.parts if isinstance(part, SystemPromptPart)]
        rest = [part for part in first.parts if not isinstance(part, SystemPromptPart)]
        return [replace(first, parts=[*base, *recalled, *rest]), *messages[1:]]


# --- The plugins' tools ------------------------------------------------------------------------------------------

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""A validator that accepts any object: the host itself checks arguments and reports their faults to the model."""


@dataclass(kw_only=True)
class _PluginTool(ToolsetTool[Any]):
    turn: AdapterTurn


@dataclass
class _WithPluginTools(WrapperToolset[Any]):
    """The agent's own tools, which win if names collide, and those of the plugins."""

    memory: BeaverMemory

    @override
    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        turn, offered = self.memory.offers()
        own = await super().get_tools(ctx)
        if turn is None:
            return own
        return {**{each.name: self._tool(each, turn, ctx) for each in offered}, **own}

    def _tool(self, offered: OfferedTool, turn: AdapterTurn, ctx: RunContext[Any]) -> _PluginTool:
        return _PluginTool(
            toolset=self,
            tool_def=ToolDefinition(
                name=offered.name, description=offered.description, parameters_json_schema=offered.parameters
            ),
            max_retries=ctx.max_retries,
            args_validator=_ANY_OBJECT,
            turn=turn,
        )

    @override
    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if isinstance(tool, _PluginTool):
            return await tool.turn.run_tool(name, tool_args, call_id=ctx.tool_call_id)
        return await super().call_tool(name, tool_args, ctx, tool)


# --- Messages of a run -------------------------------------------------------------------------------------------


def _prompt_and_history(ctx: RunContext[Any]) -> tuple[str, Sequence[ModelMessage]]:
    """Return the user's prompt, also in a run that goes on, and the messages before it."""
    if ctx.prompt is not None:
        return _said(ctx.prompt), ctx.messages
    for at in reversed(range(len(ctx.messages))):
        if texts := [text for role, text in _spoken(ctx.messages[at : at + 1]) if role == "user"]:
            return "\n".join(texts), ctx.messages[:at]
    return "", ctx.messages


def _spoken(messages: Iterable[ModelMessage]) -> Iterator[tuple[str, str]]:
    for message in messages:
        if isinstance(message, ModelResponse):
            yield "assistant", "".join(part.content for part in message.parts if isinstance(part, TextPart))
        else:
            yield from (("user", _said(part.content)) for part in message.parts if isinstance(part, UserPromptPart))


def _said(content: str | Sequence[UserContent]) -> str:
    """Return the text of a prompt; of one in several parts, of its texts."""
    if isinstance(content, str):
        return content
    texts = (part.content if isinstance(part, TextContent) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _plain(value: object) -> object:
    """Return a tool's result for the model, without pictures."""
    inner = value.return_value if isinstance(value, ToolReturn) else value
    return f"[{inner.media_type}]" if isinstance(inner, BinaryContent) else inner
