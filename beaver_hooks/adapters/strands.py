"""Memory for Strands agents, as a plugin.

    agent = Agent(model=model, plugins=[BeaverPlugin(host, trust="full")])

Strands forces these choices:

- Providers require alternating roles. So references are no messages of their own: they are the first text blocks of the
  first user message of a request, which puts them before the history.
- `agent(...)` runs in a thread with an event loop of its own, from which only a `SyncHost` can be reached.
- The session is `invocation_state["session_id"]`, else that of the session manager, else the default one, else the
  agent's own; the user is `invocation_state["user_id"]`.
- A run that is interrupted, or pauses at a checkpoint, ends its turn without an answer. The run that resumes it opens
  another one for the same prompt.
- `AfterInvocationEvent` is the last event for a plugin: an answer is committed there, after all other hooks, and just
  before the caller gets the result.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, Unpack

from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.plugins import Plugin
from strands.tools import PythonAgentTool
from strands.types.content import Message, Messages, SystemPrompt
from strands.types.tools import AgentTool, ToolResult, ToolResultStatus, ToolSpec, ToolUse
from typing_extensions import override

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults, OfferedTool, user_in
from beaver_hooks.adapters.texts import text_of
from beaver_hooks.host import Host
from beaver_hooks.sync import SyncHost
from beaver_hooks.tools.outcomes import MARK
from beaver_hostspecs import DropReason
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="strands",
    notes={
        "reference_placement": "References are text blocks at the start of the request's first user message.",
        "sees_blocks": "What a hook denies, or a provider's guardrail replaces, is dropped as blocked.",
        "has_user_id": "The caller names the user in `invocation_state`.",
        "announces_compaction": "Conversation managers send no event before they reduce the context.",
        "sync": "`agent(...)` needs a SyncHost.",
    },
)

FIRST, LAST = -1_000.0, 1_000.0
"""Orders of hooks: before and after all named orders of Strands."""

ANSWERED = frozenset({"end_turn", "stop_sequence", "tool_use"})
REASONS: Mapping[str, DropReason] = {
    "cancelled": DropReason.CANCELLED,
    "guardrail_intervened": DropReason.BLOCKED,
    "content_filtered": DropReason.BLOCKED,
    "interrupt": DropReason.ABANDONED,
    "checkpoint": DropReason.ABANDONED,
}
"""The drop reason of each stop reason without an answer; any other one is a failure."""


class _Run(str):
    """The state of one run of an agent, in its `invocation_state`.

    Streams show that state. So this object reads as the turn's id, and a copy of it is a plain string.

    Attributes:
        turn: its turn.
        tools: the plugins' tools, the same ones at each step.
        invocation: the framework's own record of the run. A run that hooks resume keeps its record.
        denied: whether a hook forbade the last model call, and answered instead.
    """

    __slots__ = ("denied", "invocation", "tools", "turn")

    turn: AdapterTurn
    tools: dict[str, OfferedTool]
    invocation: object
    denied: bool

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str.__str__(self),)

    @classmethod
    def of(cls, turn: AdapterTurn, tools: Iterable[OfferedTool], invocation: object) -> Self:
        """Return the state at the start of a run."""
        run = cls(turn.id)
        run.turn, run.invocation, run.denied = turn, invocation, False
        run.tools = {each.name: each for each in tools}
        return run


class BeaverPlugin(Plugin):
    """Gives its agents memory. One plugin serves any number of agents and runs.

    Args:
        host: an open host; a `SyncHost` for agents that are called without an event loop, or from several.
        **defaults: fields of every turn.
    """

    name = "beaver"

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        super().__init__()
        self._adapter = Adapter(host, **defaults)
        self._session = defaults.get("session")

    def init_agent(self, agent: Agent) -> None:
        """Take part in the runs of an agent."""
        agent.add_hook(self._begin, BeforeInvocationEvent, order=LAST)
        agent.add_hook(self._before_model, BeforeModelCallEvent, order=LAST)
        agent.add_hook(self._before_tool, BeforeToolCallEvent, order=FIRST)
        agent.add_hook(self._after_tool, AfterToolCallEvent, order=LAST)
        # Failures are reported at once, answers only when no other hook can fail any more.
        agent.add_hook(self._failed, AfterInvocationEvent, order=FIRST)
        agent.add_hook(self._end, AfterInvocationEvent, order=LAST)
        agent.add_middleware(InvokeModelStage.Input, self._inject)

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        # `Agent.structured_output`, which is deprecated, has no messages here and asks the model past all hooks.
        if event.cancel or event.messages is None:
            return
        state, invocation = event.invocation_state, event.agent.event_loop_metrics.latest_agent_invocation
        earlier = _run_of(event.agent, state)
        if earlier is not None and invocation is not None and earlier.invocation is invocation:
            return
        prompt, history = _prompt(event.messages, event.agent.messages)
        turn = await self._adapter.open(
            prompt, session=self._session_of(event.agent, state), user=user_in(state), history=history
        )
        tools = await self._adapter.offered_tools(turn)
        state[_key(event.agent)] = _Run.of(turn, tools, invocation)

    async def _before_model(self, event: BeforeModelCallEvent) -> None:
        if (run := _run_of(event.agent, event.invocation_state)) is not None:
            run.denied = bool(event.cancel)

    async def _inject(self, context: InvokeModelContext) -> InvokeModelContext:
        """Add the turn's recall to one request, which is a copy."""
        run = _run_of(context.agent, context.invocation_state)
        if run is None:
            return context
        known = {spec["name"] for spec in context.tool_specs}
        return context.replace(
            messages=_with_references(context.messages, run.turn.references),
            system_prompt=_with_rules(context.system_prompt, run.turn),
            tool_specs=[*context.tool_specs, *(_spec(each) for each in run.tools.values() if each.name not in known)],
        )

    async def _before_tool(self, event: BeforeToolCallEvent) -> None:
        run = _run_of(event.agent, event.invocation_state)
        if run is not None and event.selected_tool is None and event.tool_use["name"] in run.tools:
            event.selected_tool = _tool(run.tools[event.tool_use["name"]], run.turn)

    async def _after_tool(self, event: AfterToolCallEvent) -> None:
        run = _run_of(event.agent, event.invocation_state)
        if run is None or event.retry:
            return
        output = _text(event.result.get("content"))
        failed = event.result.get("status") == "error"
        await run.turn.tool_result(
            event.tool_use["name"],
            call_id=event.tool_use["toolUseId"],
            arguments=event.tool_use["input"] if isinstance(event.tool_use["input"], Mapping) else None,
            output=output,
            error=event.exception or ((output or "the tool failed") if failed else None),
            seconds=event.duration,
        )

    async def _failed(self, event: AfterInvocationEvent) -> None:
        if event.result is None:
            # Strands sends the event while the error propagates; without an error, a hook has refused the whole run.
            error = sys.exc_info()[1]
            await self._drop(event, DropReason.BLOCKED if error is None else error)

    async def _end(self, event: AfterInvocationEvent) -> None:
        run, result = _run_of(event.agent, event.invocation_state), event.result
        if run is None or result is None or event.resume is not None:
            return
        if run.denied and result.stop_reason == "end_turn":
            await self._drop(event, DropReason.BLOCKED)
        elif result.stop_reason not in ANSWERED:
            await self._drop(event, REASONS.get(result.stop_reason, DropReason.FAILED))
        else:
            del event.invocation_state[_key(event.agent)]
            structured = result.structured_output
            await run.turn.commit(_text(result.message.get("content")) if structured is None else structured)

    async def _drop(self, event: AfterInvocationEvent, reason: DropReason | BaseException) -> None:
        if (run := event.invocation_state.pop(_key(event.agent), None)) is not None:
            await run.turn.drop(reason)

    def _session_of(self, agent: Agent, state: Mapping[str, Any]) -> object:
        managed = agent.session_id if getattr(agent, "_session_manager", None) is not None else None
        return state.get("session_id") or managed or self._session or agent.session_id


def _tool(offered: OfferedTool, turn: AdapterTurn) -> AgentTool:
    """Return a plugin's tool for one call in one turn: plugins come and go, so it is in no agent's registry."""

    async def run(tool_use: ToolUse, /, **_: Any) -> ToolResult:
        text = await turn.run_tool(offered.name, tool_use["input"], call_id=tool_use["toolUseId"])
        status: ToolResultStatus = "error" if text.startswith(MARK) else "success"
        return {"toolUseId": tool_use["toolUseId"], "status": status, "content": [{"text": text}]}

    return PythonAgentTool(offered.name, _spec(offered), run)


def _key(agent: object) -> str:
    # Agents of a graph share one state; and some callbacks get it as keywords, so it must be a text.
    return f"beaver_hooks_{id(agent)}"


def _run_of(agent: object, state: Mapping[str, Any]) -> _Run | None:
    run = state.get(_key(agent))
    return run if isinstance(run, _Run) else None


def _prompt(given: Messages, before: Messages) -> tuple[str, list[tuple[str, str]]]:
    """Return the prompt and the earlier messages: a run without new input goes on with the unanswered messages."""
    whole = [*before, *given]
    start = max(_unanswered(whole), len(before) if given else 0)
    said = (_text(message["content"]) for message in whole[start:] if message["role"] == "user")
    history: list[tuple[str, str]] = [(message["role"], _text(message["content"])) for message in whole[:start]]
    return "\n".join(text for text in said if text), history


def _unanswered(messages: Messages) -> int:
    """Return the index of the first message after the last answer; calls of tools are no answers."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "assistant" and not any("toolUse" in block for block in message["content"]):
            return index + 1
    return 0


def _text(content: Iterable[Any] | None) -> str:
    """Return the text of content blocks: JSON and citations are text, images are not, nor are results of tools."""
    return "\n".join(part for part in map(_text_of, content or ()) if part)


def _text_of(block: Any) -> str:
    match block:
        case {"text": str(text)}:
            return text
        case {"json": value}:
            return text_of(value)
        case {"citationsContent": {"content": content}}:
            return _text(content)
        case _:
            return ""


def _with_references(messages: Messages, references: Sequence[str]) -> Messages:
    """Return the messages with references before all other texts."""
    if not references:
        return messages
    blocks: list[Any] = [{"text": text} for text in references]
    if not messages or messages[0]["role"] != "user":
        return [Message(role="user", content=blocks), *messages]
    first = messages[0]
    # Providers require the results of tools before any text.
    results = [block for block in first["content"] if "toolResult" in block]
    others = [block for block in first["content"] if "toolResult" not in block]
    return [{**first, "content": [*results, *blocks, *others]}, *messages[1:]]


def _with_rules(system_prompt: SystemPrompt, turn: AdapterTurn) -> SystemPrompt:
    """Return the system prompt with the plugins' rules and blocks at its end, after a cached prefix."""
    if not isinstance(system_prompt, list):
        return turn.system_prompt(system_prompt or "") or system_prompt
    if not (rules := turn.system_prompt()):
        return system_prompt
    last = system_prompt[-1] if system_prompt else {}
    if set(last) == {"text"}:
        return [*system_prompt[:-1], {"text": turn.system_prompt(last["text"])}]
    return [*system_prompt, {"text": rules}]


def _spec(tool: OfferedTool) -> ToolSpec:
    return {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.parameters}}
