"""Memory for agents of Microsoft's agent-framework, as a context provider.

    agent = Agent(client, context_providers=[InMemoryHistoryProvider(), BeaverContextProvider(host, trust="full")])

The session is the id of the run's `AgentSession`. The user is the run's option `user`, else `user_id` in the session's
state. References stand before the history at any place of the provider in the list; after a history provider, plugins
get the history as well.

The framework forces these choices:

- Context providers are called on success only, so the provider brings a chat middleware, which sees each model step.
  The client keeps its pipeline until the next run, so the middleware holds the turn weakly.
- A chat middleware that asks a failed model again makes a new turn of it: the one that failed is dropped.
- An agent middleware that refuses an answer comes after all context providers; the framework's own history holds it
  by then. List the provider as the first agent middleware too, `middleware=[memory, ...]`, and it commits after them.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from time import perf_counter
from types import TracebackType
from typing import Any, Unpack

import attrs
from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    MiddlewareTermination,
    ResponseStream,
    SessionContext,
    SupportsAgentRun,
)
from agent_framework.exceptions import UserInputRequiredException

from beaver_hooks.adapters.adapter_turn import AdapterTurn, reason_for
from beaver_hooks.adapters.core import Adapter, Defaults, OfferedTool, user_in
from beaver_hooks.host import Host
from beaver_hooks.log import make_log
from beaver_hooks.sync import SyncHost
from beaver_hostspecs import DropReason, HostMisused
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="agent-framework",
    sync=False,
    notes={
        "sync": "The framework has no entry point for callers without an event loop.",
        "sees_blocks": "Those in agent middleware where the provider is the first agent middleware too.",
        "announces_compaction": "Compaction strategies call no context provider and no middleware.",
        "sees_cancellation": "At once where the stream is closed; else when the stream is garbage-collected.",
    },
)

NEXT = Callable[[], Awaitable[None]]


@attrs.define(kw_only=True, eq=False)
class _Run:
    """The state of one run: its turn, and how to open another one when a failed model is asked again."""

    open: Callable[[], Awaitable[AdapterTurn]]
    turn: AdapterTurn | None
    waits: bool = False

    async def current(self) -> AdapterTurn:
        if self.turn is None:
            self.turn = await self.open()
        return self.turn

    async def failed(self, reason: DropReason) -> None:
        turn, self.turn = self.turn, None
        if turn is not None:
            await turn.drop(reason)

    async def ended(self, response: AgentResponse[Any] | None) -> None:
        """Commit the turn; drop one that stops to ask the user, which continues as a new turn."""
        if self.turn is None or response is None:
            return
        if response.user_input_requests:
            await self.turn.drop(DropReason.ABANDONED)
        else:
            await self.turn.commit(response.text)


@attrs.define(kw_only=True, eq=False)
class _Waiting:
    """An agent middleware that waits for the answer of one run."""

    provider: "BeaverContextProvider"
    agent: object
    run: _Run | None = None

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Let the run that begins within find it."""
        token = _WAITING.set((*_WAITING.get(), self))
        try:
            yield
        finally:
            _WAITING.reset(token)

    async def failed(self, error: BaseException) -> None:
        if self.run is not None:
            await self.run.failed(reason_for(error))

    async def given(self, result: object) -> None:
        """Take the result of the other middleware: an answer, or a stream, whose run begins when it is read."""
        if isinstance(result, ResponseStream):
            result.with_pull_context_manager(self.offered).with_result_hook(self.answered)
        elif isinstance(result, AgentResponse):
            await self.answered(result)

    async def answered(self, response: AgentResponse[Any]) -> None:
        if self.run is not None:
            await self.run.ended(response)


_WAITING: ContextVar[tuple[_Waiting, ...]] = ContextVar("beaver_hooks_waiting", default=())


class BeaverContextProvider(ContextProvider, AgentMiddleware):
    """Gives an agent's runs the memory of a host's plugins. One may serve several agents.

    Args:
        host: an open `Host` of the agents' event loop, or an open `SyncHost`.
        source_id: its name among an agent's context providers.
        **defaults: fields of every turn that the run leaves open.

    Raises:
        HostMisused: an argument is invalid.
    """

    def __init__(self, host: Host | SyncHost, *, source_id: str = "beaver", **defaults: Unpack[Defaults]) -> None:
        super().__init__(source_id)
        if defaults.get("session"):
            raise HostMisused(
                "agent-framework creates a new session for every run; pass one that `create_session` returned"
            )
        self._adapter = Adapter(host, **defaults)
        self._log = make_log()
        self._warned = False

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Open the turn, and add its recall to the context."""
        del state  # it is stored with the session, where this provider keeps no state
        history = await self._history(agent, session, context)
        fields: dict[str, Any] = {
            "prompt": _prompt(context.input_messages, history),
            "session": context.session_id,
            "user": user_in({"user_id": context.options.get("user")}, session.state),
            "history": [(str(each.role), each.text) for each in history],
        }

        async def open_turn() -> AdapterTurn:
            return await self._adapter.open(**fields)

        run = _Run(open=open_turn, turn=(turn := await open_turn()))
        run.waits = self._is_awaited(agent, run)
        # The one strong reference: it ends when the framework releases the run, or its stream.
        context.metadata[self._key] = run
        if said := turn.system_prompt():
            context.extend_instructions(self.source_id, said)
        self._offer(agent, context, weakref.ref(run), await self._adapter.offered_tools(turn))
        self._place(agent, context, run, turn)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Commit the turn, unless an agent middleware waits for the final answer."""
        del agent, session, state
        run: _Run | None = context.metadata.pop(self._key, None)
        if run is not None and not run.waits:
            await run.ended(context.response)

    async def process(self, context: AgentContext, call_next: NEXT) -> None:
        """As the first agent middleware: commit when all others have seen the answer."""
        waiting = _Waiting(provider=self, agent=context.agent)
        try:
            with waiting.offered():
                await call_next()
        except MiddlewareTermination:
            await waiting.given(context.result)
            raise
        except BaseException as error:
            await waiting.failed(error)
            raise
        await waiting.given(context.result)

    def _is_awaited(self, agent: object, run: _Run) -> bool:
        for waiting in reversed(_WAITING.get()):
            if waiting.provider is self and waiting.agent is agent and waiting.run is None:
                waiting.run = run
                return True
        return False

    @property
    def _key(self) -> str:
        return f"beaver_hooks:{self.source_id}"

    def _place(self, agent: SupportsAgentRun, context: SessionContext, run: _Run, turn: AdapterTurn) -> None:
        """Put the references before the history in each request, and nowhere else."""
        if isinstance(getattr(agent, "client", None), ChatMiddlewareLayer):
            context.extend_middleware(self.source_id, [_Steps(run, self), _ToolCalls(run)])
            return
        self._warn(
            "its client runs no middleware: memory sees no tool results, and references stand where this provider is"
            " listed"
        )
        context.extend_messages(self, self.messages(turn))

    def messages(self, turn: AdapterTurn) -> list[Message]:
        """Return the reference messages; they bear the provider's name, so that no history takes them for input."""
        named = {"_attribution": {"source_id": self.source_id, "source_type": type(self).__name__}}
        return [Message("user", [text], additional_properties=dict(named)) for text in turn.references]

    def wrote(self, message: Message) -> bool:
        """Whether a message is one of this provider's."""
        named = message.additional_properties.get("_attribution")
        return isinstance(named, Mapping) and named.get("source_id") == self.source_id

    def _offer(
        self,
        agent: SupportsAgentRun,
        context: SessionContext,
        run: "weakref.ref[_Run]",
        offered: Iterable[OfferedTool],
    ) -> None:
        """Offer the plugins' tools; those of the agent win where names are the same."""
        taken = {getattr(tool, "name", None) for tool in _tools(agent, context)}
        context.extend_tools(self.source_id, [_as_tool(each, run) for each in offered if each.name not in taken])

    async def _history(self, agent: SupportsAgentRun, session: AgentSession, context: SessionContext) -> list[Message]:
        """Return the messages that earlier providers loaded, or those in the session's own state."""
        providers = [each for each in getattr(agent, "context_providers", ()) if isinstance(each, HistoryProvider)]
        if loaded := context.get_messages(sources={each.source_id for each in providers}):
            return loaded
        for each in providers:
            if isinstance(each, InMemoryHistoryProvider):
                return await each.get_messages(context.session_id, state=session.state.get(each.source_id))
        if any(each.load_messages and each.source_id not in context.context_messages for each in providers):
            self._warn("plugins do not get the history: list the history provider before this one")
        return []

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._log.warning("adapter_limited", adapter=CARD.host, source_id=self.source_id, why=why)


# --- What happens in a run ---------------------------------------------------------------------------------------


class _Steps(ChatMiddleware):
    """Observes each model step. The client keeps it after the run, so it must not keep the run."""

    def __init__(self, run: _Run, provider: BeaverContextProvider) -> None:
        self._run = weakref.ref(run)
        self._provider = provider

    async def process(self, context: ChatContext, call_next: NEXT) -> None:
        run = self._run()
        if run is None:
            await call_next()
            return
        turn = await run.current()
        # A middleware that calls this one again passes the messages that this one changed.
        others = [each for each in context.messages if not self._provider.wrote(each)]
        context.messages = [*self._provider.messages(turn), *others]
        del turn
        try:
            await call_next()
        except MiddlewareTermination:
            raise  # an answer of another middleware
        except BaseException as error:
            await run.failed(reason_for(error))
            raise
        if isinstance(context.result, ResponseStream):
            watch = _Watch(run=run)
            context.result.with_pull_context_manager(lambda: watch).with_cleanup_hook(watch.cleaned)


@attrs.define(kw_only=True, eq=False)
class _Watch:
    """Watches one streamed model step: it is left at its end, with an error, or before."""

    run: _Run
    left: DropReason | None = DropReason.CANCELLED

    def __enter__(self) -> None:
        """A piece is pulled."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.left = None if isinstance(error, StopAsyncIteration) else reason_for(error)

    async def cleaned(self) -> None:
        if self.left is not None:
            await self.run.failed(self.left)


class _ToolCalls(FunctionMiddleware):
    """Reports the results of tool calls to the plugins."""

    def __init__(self, run: _Run) -> None:
        self._run = weakref.ref(run)

    async def process(self, context: FunctionInvocationContext, call_next: NEXT) -> None:
        run = self._run()
        started = perf_counter()
        try:
            await call_next()
        except asyncio.CancelledError:
            if run is not None:
                await run.failed(DropReason.CANCELLED)
            raise
        except (MiddlewareTermination, UserInputRequiredException):
            raise  # it has no result
        except Exception as error:
            await _tell(run, context, started, error=error)
            raise
        if not _asks(context.result):
            await _tell(run, context, started, output=_plain(context.result))


async def _tell(run: _Run | None, context: FunctionInvocationContext, started: float, **told: Any) -> None:
    if run is None or run.turn is None:
        return
    given = context.arguments
    arguments = dict(given.model_dump() if hasattr(given, "model_dump") else given)
    call_id = context.metadata.get("call_id")
    seconds = perf_counter() - started
    await run.turn.tool_result(context.function.name, call_id=call_id, arguments=arguments, seconds=seconds, **told)


def _asks(result: object) -> bool:
    """Whether a tool has no result yet, and asks for an approval."""
    return isinstance(result, Content) and result.type == "function_approval_request"


def _plain(result: object) -> object:
    """Return a tool's result as the model gets it: texts, and the types of other contents."""
    if isinstance(result, list) and all(isinstance(item, Content) for item in result):
        return "\n".join(item.text if item.type == "text" else f"[{item.type}]" for item in result)
    return result


def _as_tool(offered: OfferedTool, run: "weakref.ref[_Run]") -> FunctionTool:
    async def call(**arguments: Any) -> str:
        found = run()
        if found is None:
            return "the run is over"
        return await (await found.current()).run_tool(offered.name, arguments)

    return FunctionTool(name=offered.name, description=offered.description, input_model=offered.parameters, func=call)


def _tools(agent: SupportsAgentRun, context: SessionContext) -> Iterator[object]:
    """Yield the tools of the agent itself, and of the providers before this one."""
    options = getattr(agent, "default_options", None) or {}
    yield from options.get("tools") or ()
    for server in getattr(agent, "mcp_tools", ()):
        yield from server.functions
    yield from context.tools


def _prompt(messages: Iterable[Message], history: Iterable[Message]) -> str:
    """Return the user's prompt; in a run that goes on, the last one."""
    for said in (_said(messages), *(_said([each]) for each in reversed(list(history)))):
        if said:
            return said
    return ""


def _said(messages: Iterable[Message]) -> str:
    texts = (
        part.text for each in messages if str(each.role) == "user" for part in each.contents if part.type == "text"
    )
    return "\n".join(text for text in texts if text)
