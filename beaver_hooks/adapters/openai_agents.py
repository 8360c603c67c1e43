"""Memory for agents of the OpenAI Agents SDK, as a runner with the interface of the SDK's own `Runner`.

    result = await BeaverRunner(host, trust="full").run(agent, "When do we release?", session=session)

The session is the `session_id` of the run's `session`, else its `conversation_id`, else the `group_id` of its
`run_config`. The user is `user_id` in the run's `context` (a mapping's key or an attribute).

The framework forces these choices:

- Only the caller of the runner knows that an answer was delivered, since output guardrails come after the last hook. So
  a turn is committed when `run` has returned, or when the consumer of a stream has seen the end of `stream_events()`.
- Tools belong to an agent, and approvals to that very object. So the code that makes the agent adds the plugins' tools:
  `tools=[..., *runner.tools]`.
- A tool's own `failure_error_function` leaves no trace of a failure; the default one does.
- A run that stops for an approval has no answer yet: its turn is dropped. The run that goes on from its state is a turn
  of its own, with the same prompt.
- With `conversation_id` or `previous_response_id` the provider keeps all input, references too: they are sent once per
  turn.
"""

import functools
import inspect
import json
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Unpack, cast

from agents import (
    Agent,
    AgentHookContext,
    FunctionTool,
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunResult,
    RunResultStreaming,
    RunState,
    StreamEvent,
    Tool,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    TResponseInputItem,
)
from agents.lifecycle import RunHooksBase
from agents.result import RunResultBase
from agents.run_config import CallModelData, ModelInputData, RunOptions, ToolErrorFormatterArgs
from agents.tool_context import ToolContext
from typing_extensions import override

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults, OfferedTool, user_in
from beaver_hooks.host import Host
from beaver_hooks.sync import SyncHost
from beaver_hooks.tools.outcomes import render_error
from beaver_hostspecs import DropReason, HostMisused
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="openai-agents",
    notes={
        "reference_persistence": "With `conversation_id` or `previous_response_id` the provider keeps references.",
        "sees_tool_errors": "Unless a tool has a `failure_error_function` of its own.",
        "announces_compaction": "Sessions that compact call no hook of a run; call the host before `run_compaction`.",
        "offers_tools": "Where they are among the agent's `tools`.",
    },
)

BLOCKED = (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
)

SERVER_SIDE = ("conversation_id", "previous_response_id", "auto_previous_response_id")
"""Options of a run whose history the provider keeps."""

STREAMED = inspect.signature(Runner.run_streamed)

Input = str | list[TResponseInputItem] | RunState[Any]


class BeaverRunner:
    """Runs agents with the memory of a host's plugins. One may serve several agents.

    Args:
        host: an open `SyncHost`, or an open `Host` for `run` and `run_streamed` in its event loop.
        **defaults: fields of every turn that the run leaves open.
    """

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        self._adapter = Adapter(host, **defaults)
        self._in_loop = isinstance(host, Host)

    @property
    def tools(self) -> list[Tool]:
        """The tools of the plugins that are registered now, for an agent's `tools`. The host must be open."""
        return [_tool(each) for each in self._adapter.tools]

    async def run(
        self,
        starting_agent: Agent[Any],
        input: Input,  # noqa: A002 - the SDK's name
        **options: Unpack[RunOptions[Any]],
    ) -> RunResult:
        """Do as `Runner.run` does."""
        run = _Run(self._adapter, options)
        try:
            result = await Runner.run(starting_agent, input, **run.options())
        except BaseException as error:
            await run.failed(error)
            raise
        await run.returned(result)
        return result

    def run_sync(
        self,
        starting_agent: Agent[Any],
        input: Input,  # noqa: A002 - the SDK's name
        **options: Unpack[RunOptions[Any]],
    ) -> RunResult:
        """Do as `Runner.run_sync` does; needs a `SyncHost`."""
        if self._in_loop:
            raise HostMisused("`run_sync` cannot use a Host, which needs its own event loop; use a SyncHost")
        run = _Run(self._adapter, options)
        try:
            result = Runner.run_sync(starting_agent, input, **run.options())
        except BaseException as error:
            self._adapter.quietly_now("drop", run.failed, error=error)
            raise
        self._adapter.quietly_now("commit", run.returned, result=result)
        return result

    def run_streamed(
        self,
        starting_agent: Agent[Any],
        input: Input,  # noqa: A002 - the SDK's name
        *positional: Any,
        **options: Unpack[RunOptions[Any]],
    ) -> RunResultStreaming:
        """Do as `Runner.run_streamed` does, which takes positional options too."""
        given = STREAMED.bind(starting_agent, input, *positional, **options).arguments
        run = _Run(self._adapter, cast("RunOptions[Any]", dict(list(given.items())[2:])))
        result = Runner.run_streamed(starting_agent, input, **run.options())
        # In the result itself, so that the SDK's other functions still take it; and it must not hold itself.
        vars(result)["stream_events"] = functools.partial(_stream, weakref.ref(result), run)
        return result


class _Run(RunHooks[Any]):
    """One run: its state, its hooks, and the filter of the model's input.

    The user's own hooks, filter and formatter are called as if they stood alone. Agents that run as tools inherit the
    filter, and get no memory by it.
    """

    def __init__(self, adapter: Adapter, options: RunOptions[Any]) -> None:
        self.turn: AdapterTurn | None = None
        self._adapter = adapter
        self._options = options
        self._hooks = options.get("hooks") or RunHooks()
        self._filter = _configured(options, "call_model_input_filter")
        self._formatter = _configured(options, "tool_error_formatter")
        self._agent: object = None
        self._shown = False
        self._errors: dict[str, Exception | None] = {}
        for name in dir(RunHooksBase):
            if name.startswith("on_") and name not in vars(_Run):
                setattr(self, name, getattr(self._hooks, name, None))

    def options(self) -> dict[str, Any]:
        """Return the options for the SDK's runner."""
        hooks = self if isinstance(self._hooks, RunHooksBase) else self._hooks  # which the SDK refuses
        config = self._options.get("run_config") or {}
        ours: dict[str, Any] = {"call_model_input_filter": self, "tool_error_formatter": self._formatted}
        # Without a `RunConfig` of the user, the SDK makes one, and closes it.
        merged = {**config, **ours} if isinstance(config, dict) else replace(config, **ours)
        return {**self._options, "hooks": hooks, "run_config": merged}

    # --- The end of a run ---------------------------------------------------------------------------------------

    async def returned(self, result: RunResultBase) -> None:
        """Commit the caller's answer; a run that waits for an approval has none."""
        if self.turn is None:
            return
        if getattr(result, "interruptions", None):
            await self.turn.drop(DropReason.ABANDONED)
        else:
            await self.turn.commit(result.final_output)

    async def failed(self, error: BaseException) -> None:
        """Drop the turn."""
        if self.turn is not None:
            await self.turn.drop(DropReason.BLOCKED if isinstance(error, BLOCKED) else error)

    async def stream(self, result: RunResultStreaming) -> AsyncGenerator[StreamEvent, None]:
        """Pass on the events, and commit when the consumer has seen all of them."""
        stream = cast("AsyncGenerator[StreamEvent, None]", RunResultStreaming.stream_events(result))
        async with aclosing(stream) as events:
            try:
                async for event in events:
                    yield event
            except BaseException as error:
                await self.failed(error)
                raise
        if self.turn is not None and result.final_output is None and not result.interruptions:
            await self.turn.drop(DropReason.CANCELLED)
        await self.returned(result)

    # --- Input of the model -------------------------------------------------------------------------------------

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Put memory into the model's input, as the run's `call_model_input_filter`."""
        ours = data.agent is self._agent
        if ours and self.turn is None:
            await self._open(data)
        filtered = data.model_data if self._filter is None else self._filter(data)
        filtered = await filtered if inspect.isawaitable(filtered) else filtered
        if self.turn is None or not ours or not isinstance(filtered, ModelInputData):
            return cast("ModelInputData", filtered)
        return replace(
            filtered,
            input=_before_history(self._references(self.turn), filtered.input),
            instructions=self.turn.system_prompt(filtered.instructions or "") or filtered.instructions,
        )

    async def _open(self, data: CallModelData[Any]) -> None:
        items = [each for each in data.model_data.input if isinstance(each, dict)]
        at = max((at for at, each in enumerate(items) if each.get("role") == "user"), default=len(items))
        self.turn = await self._adapter.open(
            "".join(_said(each.get("content")) for each in items[at : at + 1]),
            session=self._session(),
            user=user_in(data.context),
            history=[(str(each.get("role")), _said(each.get("content"))) for each in items[:at]],
        )
        for call, output in _results(items[at:]):
            await self._tell(str(call["name"]), str(call["call_id"]), call.get("arguments"), output)

    def _session(self) -> object:
        """Return the id of the run's session. The SDK never reads it, so an id that raises must not end the run."""
        session = self._options.get("session")
        try:
            named = getattr(session, "session_id", None)
        except Exception as error:  # noqa: BLE001 - the session is foreign code; it is logged
            self._adapter.limited("session", "its `session_id` raises", error)
            named = None
        return named or self._options.get("conversation_id") or _configured(self._options, "group_id")

    def _references(self, turn: AdapterTurn) -> list[TResponseInputItem]:
        kept = any(self._options.get(each) for each in SERVER_SIDE)
        texts = () if kept and self._shown else turn.references
        self._shown = True
        return [{"role": "user", "content": text} for text in texts]

    # --- Tools --------------------------------------------------------------------------------------------------

    async def use(self, name: str, arguments: str, context: ToolContext[Any]) -> str:
        """Run a plugin's tool in the turn; in a run that goes on and has no turn yet, in one of its own."""
        turn = self.turn or await self._adapter.open("", session=self._session(), user=user_in(context.context))
        return await turn.run_tool(name, arguments, call_id=context.tool_call_id)

    @override
    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:
        self._agent = agent
        await self._hooks.on_agent_start(context, agent)

    @override
    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        call_id, arguments = getattr(context, "tool_call_id", None), getattr(context, "tool_arguments", None)
        await self._tell(tool.name, call_id, arguments, result)
        await self._hooks.on_tool_end(context, agent, tool, result)

    async def _tell(self, tool: str, call_id: str | None, arguments: object, output: object) -> None:
        if self.turn is None:
            return  # the call is reported when the turn is opened
        failed = call_id in self._errors
        error = self._errors.pop(call_id or "", None) or ("it failed" if failed else None)
        await self.turn.tool_result(tool, call_id=call_id, arguments=_arguments(arguments), output=output, error=error)

    def _formatted(self, given: ToolErrorFormatterArgs[Any]) -> Any:
        """Remember a tool's failure, and return the text of the user's formatter."""
        if given.kind == "tool_exception":
            self._errors[given.call_id] = given.error
        return None if self._formatter is None else self._formatter(given)


def _stream(streamed: "weakref.ref[RunResultStreaming]", run: _Run) -> AsyncIterator[StreamEvent]:
    return run.stream(cast("RunResultStreaming", streamed()))


def _tool(offered: OfferedTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        run = getattr(context.run_config, "call_model_input_filter", None)
        if isinstance(run, _Run):
            return await run.use(offered.name, arguments, context)
        return render_error(
            offered.name, "this run has no memory, because a BeaverRunner did not start it; use `BeaverRunner.run`"
        )

    return FunctionTool(
        name=offered.name,
        description=offered.description,
        params_json_schema=offered.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


# --- Messages of a run -------------------------------------------------------------------------------------------


def _configured(options: RunOptions[Any], name: str) -> Any:
    config = options.get("run_config")
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _before_history(
    recalled: Sequence[TResponseInputItem], items: Sequence[TResponseInputItem]
) -> list[TResponseInputItem]:
    """Return all items; those of the system and the developer stay first."""
    said = (at for at, each in enumerate(items) if each.get("role") not in {"system", "developer"})
    at = next(said, len(items))
    return [*items[:at], *recalled, *items[at:]]


def _said(content: object) -> str:
    """Return the text of a message, which may have several parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text"))


def _results(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], object]]:
    """Return the calls that were answered before the turn was opened, in a run that goes on."""
    calls = {each["call_id"]: each for each in items if each.get("type") == "function_call"}
    for each in items:
        if each.get("type") == "function_call_output" and each["call_id"] in calls:
            yield calls[each["call_id"]], each.get("output")


def _arguments(written: object) -> dict[str, Any]:
    try:
        arguments = json.loads(written) if isinstance(written, str) else written
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}
