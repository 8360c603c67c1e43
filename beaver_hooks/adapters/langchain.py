"""Memory for agents that LangChain's `create_agent` makes, as a middleware.

    agent = create_agent("openai:gpt-5", tools=[...], middleware=[BeaverMiddleware(host, trust="full")])

The session is the run's `thread_id`, the user is `user_id` in the run's `context` (a mapping's key or an attribute), or
the user that a LangGraph server authenticated.

The turn begins with the first request to the model.

The framework forces these choices:

- Its hooks end with `after_agent`, which runs in reverse order. So list this middleware after those that write the
  system prompt (`dynamic_prompt` replaces texts of others), and before those that retry or that judge the answer:
  `[written, BeaverMiddleware(host), ModelRetryMiddleware(), guardrail]`.
- The framework does not report that a run failed. A failed model call ends the turn; a middleware that is listed before
  this one and retries begins another. Another middleware may handle a failed tool, so if its exception ends the run,
  the turn is dropped when the interpreter collects the run.
- An interrupted run has no answer yet, and its state is gone: its turn is dropped. The run that resumes it is a turn of
  its own, with the same prompt, and its plugins get the tool calls again.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, NotRequired, Self, Unpack

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.channels import UntrackedValue
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import override

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults, OfferedTool, user_in
from beaver_hooks.host import Host
from beaver_hooks.sync import SyncHost
from beaver_hooks.tools.outcomes import MARK
from beaver_hostspecs import DropReason
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="langchain",
    notes={
        "sees_blocks": "Of middlewares that are listed after this one.",
        "announces_compaction": "A middleware that summarises tells no other middleware.",
        "sees_tool_errors": "A tool whose exception ends the run ends the turn, at the next garbage collection.",
    },
)

KEY = "beaver_run"

ToolAnswer = ToolMessage | Command[Any]


class Run(str):
    """The state of one run in the graph's state, in a channel that is never stored.

    Streams show the graph's state. So this object reads as the turn's id, and a copy of it is a plain string.
    """

    __slots__ = ("answer", "calls", "tools", "turn")

    turn: AdapterTurn | None
    tools: dict[str, "PluginTool"]
    calls: dict[str, ToolCall]
    answer: ModelResponse[Any]

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str.__str__(self),)

    @classmethod
    def of(cls, turn: AdapterTurn, tools: Iterable["PluginTool"]) -> Self:
        """Return the state at the start of a run."""
        run = cls(turn.id)
        run.turn, run.calls, run.answer = turn, {}, ModelResponse(result=[])
        run.tools = {each.name: each for each in tools}
        return run

    async def failed(self, error: BaseException) -> None:
        """Drop the turn, and release it: another model call needs a new one."""
        turn, self.turn = self.turn, None
        if turn is not None:
            await turn.drop(DropReason.ABANDONED if isinstance(error, GraphBubbleUp) else error)

    def tool_failed(self, error: BaseException) -> None:
        """Remember an error that ends the run unless another middleware handles it."""
        if self.turn is not None and not isinstance(error, GraphBubbleUp):
            self.turn.may_fail(error)


class PluginTool(BaseTool):
    """A plugin's tool, as offered or bound to the run that calls it."""

    handle_tool_error: bool | str | Callable[[ToolException], str] | None = True
    held: Any = None
    call_id: str = ""

    @override
    def _run(self, /, **arguments: Any) -> str:
        return _told(self._turn().run_tool_now(self.name, arguments, call_id=self.call_id))

    @override
    async def _arun(self, /, **arguments: Any) -> str:
        return _told(await self._turn().run_tool(self.name, arguments, call_id=self.call_id))

    def _turn(self) -> AdapterTurn:
        if self.held is None or self.held.turn is None:
            raise ToolException(f"{MARK} {self.name}: the turn of this call is over")
        turn: AdapterTurn = self.held.turn
        return turn


class State(AgentState[Any]):
    """The agent's state, with a channel for the state of one run."""

    beaver_run: NotRequired[Annotated[Any, UntrackedValue, PrivateStateAttr]]


class BeaverMiddleware(AgentMiddleware[State, Any, Any]):
    """Gives an agent's runs the memory of a host's plugins. One may serve several agents.

    Args:
        host: an open `SyncHost`, or an open `Host` for `ainvoke` and `astream` in its event loop.
        **defaults: fields of every turn that the run leaves open.
    """

    state_schema = State
    tools = ()

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        super().__init__()
        self._adapter = Adapter(host, **defaults)

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Open the turn at the first request, put memory into each, and report the tools that ran before it."""
        run = _found(request.state) or await self._begin(request.state, request.runtime, resumes=True)
        await _tell(run, request.state["messages"])
        try:
            answer = await handler(_with_memory(request, run))
        except BaseException as error:
            await run.failed(error)
            raise
        return _answered(run, answer, request.state)

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Open the turn at the first request, put memory into each, and report the tools that ran before it."""
        run = _found(request.state) or self._adapter.now(self._begin, request.state, request.runtime, resumes=True)
        self._adapter.quietly_now("tool_result", _tell, run=run, messages=request.state["messages"])
        try:
            answer = handler(_with_memory(request, run))
        except BaseException as error:
            self._adapter.quietly_now("drop", run.failed, error=error)
            raise
        return _answered(run, answer, request.state)

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        """Let a plugin's tool run in the turn, and remember the call."""
        run = _found(request.state)
        if run is None and request.tool is None:
            run = await self._begin(request.state, request.runtime)
        if run is None:
            return await handler(request)
        try:
            return await handler(_bound(request, run))
        except BaseException as error:
            run.tool_failed(error)
            raise

    @override
    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        """Let a plugin's tool run in the turn, and remember the call."""
        run = _found(request.state)
        if run is None and request.tool is None:
            run = self._adapter.now(self._begin, request.state, request.runtime)
        if run is None:
            return handler(request)
        try:
            return handler(_bound(request, run))
        except BaseException as error:
            run.tool_failed(error)
            raise

    @override
    async def aafter_agent(self, state: State, runtime: Runtime[Any]) -> None:
        """Close the turn."""
        await self._end(state)

    @override
    def after_agent(self, state: State, runtime: Runtime[Any]) -> None:
        """Close the turn."""
        self._adapter.quietly_now("commit", self._end, state=state)

    async def _begin(self, state: Any, runtime: Any, *, resumes: bool = False) -> Run:
        info, messages = runtime.execution_info, state["messages"]
        at = _last_prompt(messages)
        turn = await self._adapter.open(
            "".join(str(each.text) for each in messages[at : at + 1]),
            session=info.thread_id if info else None,
            user=user_in(runtime.context, {"user_id": _authenticated(runtime.server_info)}),
            history=_spoken(messages[:at]),
        )
        run = Run.of(turn, [_tool(each) for each in await self._adapter.offered_tools(turn)])
        run.calls = _calls_since(messages, at) if resumes else {}
        return run

    async def _end(self, state: State) -> None:
        run = _found(state)
        if run is None or run.turn is None:
            return
        await _tell(run, state["messages"])
        answer = _answer(run, state["messages"])
        await (run.turn.drop(DropReason.BLOCKED) if answer is None else run.turn.commit(answer))


# --- Requests to the model ---------------------------------------------------------------------------------------


def _with_memory(request: ModelRequest[Any], run: Run) -> ModelRequest[Any]:
    """Return the request with the rules, the references and the plugins' tools; without any of them, unchanged.

    A part without additions stays the same object: other middlewares append to lists in place.
    """
    if run.turn is None:
        return request
    changed: dict[str, Any] = {}
    if run.turn.system_prompt():
        changed["system_message"] = _system(request.system_message, run.turn)
    if recalled := [HumanMessage(text) for text in run.turn.references]:
        changed["messages"] = _before_history(recalled, request.messages)
    if tools := _not_taken(run, request):
        changed["tools"] = [*request.tools, *tools]
    return request.override(**changed) if changed else request


def _not_taken(run: Run, request: ModelRequest[Any]) -> list[PluginTool]:
    """Return the plugins' tools whose names no tool of the request has."""
    taken = {
        each["name"] if isinstance(each, dict) and "name" in each else getattr(each, "name", None)
        for each in request.tools
    }
    return [tool for name, tool in run.tools.items() if name not in taken]


def _system(message: SystemMessage | None, turn: AdapterTurn) -> SystemMessage:
    """Return a system message with the rules and blocks at its end."""
    said = turn.system_prompt()
    if message is None:
        return SystemMessage(said)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": turn.system_prompt(message.content)})
    # Blocks of content stay unchanged: they may contain marks for a provider's cache.
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": said}]})


def _before_history(recalled: Sequence[AnyMessage], messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return all messages, system messages first, as some providers require."""
    at = next((at for at, each in enumerate(messages) if not isinstance(each, SystemMessage)), len(messages))
    return [*messages[:at], *recalled, *messages[at:]]


def _answered(run: Run, answer: ModelResponse[Any], state: Any) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    run.answer = answer
    if state.get(KEY) is run:
        return answer
    return ExtendedModelResponse(answer, Command(update={KEY: run}))


# --- Tools -------------------------------------------------------------------------------------------------------


def _tool(offered: OfferedTool) -> PluginTool:
    return PluginTool(name=offered.name, description=offered.description, args_schema=offered.parameters)


def _bound(request: ToolCallRequest, run: Run) -> ToolCallRequest:
    """Return the request with the plugin's tool that it calls, unless the agent has a tool of that name."""
    call = request.tool_call
    run.calls[call["id"] or ""] = call
    tool = run.tools.get(call["name"]) if request.tool is None else None
    if tool is None:
        return request
    return request.override(tool=tool.model_copy(update={"held": run, "call_id": call["id"] or ""}))


def _told(text: str) -> str:
    """Return the result of a plugin's tool, or raise a failure."""
    if text.startswith(MARK):
        raise ToolException(text)
    return text


def _calls_since(messages: Sequence[AnyMessage], at: int) -> dict[str, ToolCall]:
    """Return the calls that were answered before the turn was opened, in a resumed run."""
    answered = {each.tool_call_id for each in messages[at:] if isinstance(each, ToolMessage)}
    calls = [call for each in messages[at:] if isinstance(each, AIMessage) for call in each.tool_calls]
    return {call["id"]: call for call in calls if call["id"] in answered}


async def _tell(run: Run, messages: Iterable[AnyMessage]) -> None:
    """Report each new tool call to the plugins once, with the text that the model gets."""
    answers = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    calls, run.calls = run.calls, {}
    for name, call in calls.items():
        answer = answers.get(name)
        text = "" if answer is None else str(answer.text)
        error = (text or "it failed") if answer is not None and answer.status == "error" else None
        if run.turn is not None:
            await run.turn.tool_result(call["name"], call_id=name, arguments=call["args"], output=text, error=error)


# --- Messages and state of a run ---------------------------------------------------------------------------------


def _found(state: Any) -> Run | None:
    """Return the state of the run; `None` before its first request, and after the release of its turn."""
    run = state.get(KEY)
    return run if isinstance(run, Run) and run.turn is not None else None


def _authenticated(server: Any) -> object:
    return None if server is None or server.user is None else server.user.identity


def _last_prompt(messages: Sequence[AnyMessage]) -> int:
    """Return the index of the user's last message, or the end."""
    found = (at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage))
    return next(found, len(messages))


def _spoken(messages: Iterable[AnyMessage]) -> Iterator[tuple[str, str]]:
    for each in messages:
        if isinstance(each, HumanMessage | AIMessage):
            yield "user" if isinstance(each, HumanMessage) else "assistant", str(each.text)


def _answer(run: Run, messages: Sequence[AnyMessage]) -> object:
    """Return the user's answer; `None` if another middleware has replaced the model's."""
    last = messages[-1] if messages else None
    if last is None or all(last.id != each.id for each in run.answer.result):
        # A tool may have answered instead of the model.
        return str(last.text) if isinstance(last, ToolMessage) and last.status != "error" else None
    structured = run.answer.structured_response
    return str(last.text) if structured in (None, "") else structured
