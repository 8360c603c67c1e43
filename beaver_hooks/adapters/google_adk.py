"""Memory for Google ADK, as a plugin of an `App` or a `Runner`.

    app = App(name="mine", root_agent=agent, plugins=[BeaverPlugin(host, trust="full")])

ADK forces these choices:

- A plugin that answers a callback hides it from later plugins; so this one, which answers none, stands first.
- ADK wraps an exception of a plugin in a `RuntimeError` that quotes it.
- The turn belongs to the invocation: agents that take it over, and sub-agents, get the same references. An agent
  that is called as a tool runs an invocation of its own; it has no turn, because its prompt is not the user's.
- A run ends with its last final response, as the session has it, after all callbacks. A run that waits (for a
  confirmation, or a long-running tool) ends its turn without an answer; the run that resumes it opens another turn for
  the same prompt.
- ADK calls no callback when a run is cancelled. The plugin watches the task that asked the model; if that is the
  caller's own, as with a `SequentialAgent` at the root, the turn is dropped once Python collects the run.
- Live runs (`run_live`) have no memory.

The session is ADK's session id, the user its user id.
"""

import asyncio
import sys
import weakref
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Unpack

import attrs
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from beaver_hooks.adapters.core import Adapter, AdapterTurn, Defaults, OfferedTool
from beaver_hooks.adapters.texts import text_of
from beaver_hooks.host import Host
from beaver_hooks.sync import SyncHost
from beaver_hooks.tools.outcomes import MARK
from beaver_hostspecs import DropReason
from beaver_hostspecs.conformance.cards import Card

CARD = Card(
    host="google-adk",
    notes={
        "sees_cancellation": "At once where ADK runs the agent in a task of its own, as it does with an `LlmAgent`.",
        "sees_blocks": "What a callback puts in the answer's place is committed as the user got it.",
        "sees_tool_errors": "A tool that raises ends an ADK run, unless a callback answers for it.",
        "announces_compaction": "ADK calls no callback of plugins before it compacts events.",
        "sync": "`Runner.run` needs a SyncHost.",
    },
)

BLOCKED = frozenset({"SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"})
"""Error codes of a provider's guardrails."""

_OUTER: ContextVar[str | None] = ContextVar("beaver_hooks_outer_invocation", default=None)
"""The invocation whose tool is running in this context."""


@attrs.define(kw_only=True, eq=False)
class _Run:
    """The state of one run of an invocation.

    Attributes:
        turn: its turn.
        tools: the plugins' tools, the same ones at each step.
        known: the ids of the invocation's earlier events.
        consumer: the caller's task.
        told: the tool calls whose results were reported.
        watched: the tasks that asked the model.
    """

    turn: AdapterTurn
    tools: tuple[OfferedTool, ...]
    known: frozenset[str]
    consumer: "weakref.ref[asyncio.Task[Any]] | None"
    told: set[str] = attrs.field(factory=set)
    watched: "weakref.WeakSet[asyncio.Task[Any]]" = attrs.field(factory=weakref.WeakSet)

    def watch(self) -> None:
        """Watch the task that asks the model, unless it is the caller's own, which outlives the run."""
        task = asyncio.current_task()
        consumer = None if self.consumer is None else self.consumer()
        if task is not None and task is not consumer and task not in self.watched:
            self.watched.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        # A node that ran out of time is cancelled too, and its run goes on; so only a cancelled caller counts.
        consumer = None if self.consumer is None else self.consumer()
        if task.cancelled() and consumer is not None and consumer.cancelling():
            self.turn.drop_soon(DropReason.CANCELLED)


class BeaverPlugin(BasePlugin):
    """Gives the agents of an app memory. One plugin serves any number of runs.

    Args:
        host: an open host; a `SyncHost` for `Runner.run`, or for several event loops.
        **defaults: fields of every turn.
    """

    def __init__(self, host: Host | SyncHost, **defaults: Unpack[Defaults]) -> None:
        super().__init__(name="beaver")
        self._adapter = Adapter(host, **defaults)
        self._runs: dict[str, _Run] = {}

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Open the turn."""
        context, key = invocation_context, invocation_context.invocation_id
        if context.live_request_queue is not None or _OUTER.get() in self._runs:
            return
        own = [event for event in context.session.events if event.invocation_id == key]
        asked = (_text(event.content) for event in own if event.author == "user")
        turn = await self._adapter.open(
            _text(context.user_content) or next(filter(None, asked), ""),
            session=context.session.id,
            user=context.user_id,
            history=_history(event for event in context.session.events if event.invocation_id != key),
        )
        tools = await self._adapter.offered_tools(turn)
        task = asyncio.current_task()
        consumer = None if task is None else weakref.ref(task)
        run = _Run(turn=turn, tools=tools, known=frozenset(event.id for event in own), consumer=consumer)
        self._runs[key] = run
        # ADK releases a cancelled run without a callback.
        weakref.finalize(context, _forget, self._runs, key, run).atexit = False

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add the turn's recall to one request."""
        if (run := self._runs.get(callback_context.invocation_id)) is None:
            return
        run.watch()
        # Before the history, but after the fixed prefix of all the agent's requests.
        start = getattr(llm_request, "_static_instruction_prefix_end_index", None) or 0
        llm_request.contents[start:start] = [
            types.Content(role="user", parts=[types.Part(text=text)]) for text in run.turn.references
        ]
        if rules := run.turn.system_prompt():
            llm_request.append_instructions([rules])
        if _takes_functions(llm_request.config):
            offered = (each for each in run.tools if each.name not in llm_request.tools_dict)
            llm_request.append_tools([_PluginTool(each, self._runs) for each in offered])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Mark invocations within the tool, whose prompts are not the user's."""
        del tool, tool_args
        if tool_context.invocation_id in self._runs:
            _OUTER.set(tool_context.invocation_id)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Report a tool's result."""
        # Tools of ADK return this instead of raising.
        failed = isinstance(result, Mapping) and set(result) == {"error"}
        told = {"error": str(result["error"])} if failed else {"output": result}
        await self._tell(tool, tool_args, tool_context, told)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """Report a tool that raised."""
        await self._tell(tool, tool_args, tool_context, {"error": error})

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Close the turn. The run is complete, or its consumer broke it off."""
        key = invocation_context.invocation_id
        if (run := self._runs.pop(key, None)) is None:
            return
        events = [each for each in invocation_context.session.events if each.invocation_id == key]
        new = [each for each in events if each.id not in run.known and each.author != "user"]
        if invocation_context.is_aborted:
            await run.turn.drop(DropReason.CANCELLED)
        elif _waits(new):
            await run.turn.drop(DropReason.ABANDONED)
        elif (last := next(filter(_ends, reversed(new)), None)) is None:
            # If the consumer broke off the run, ADK makes this call while that exception propagates.
            await run.turn.drop(sys.exc_info()[1] or DropReason.FAILED)
        elif last.author == "model" or str(getattr(last.error_code, "value", last.error_code)) in BLOCKED:
            # No agent has this name: it marks the answer of a plugin that refuses the run.
            await run.turn.drop(DropReason.BLOCKED)
        elif last.error_code:
            await run.turn.drop(DropReason.FAILED)
        else:
            await run.turn.commit(_answer(last))

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Drop the turn."""
        if (run := self._runs.pop(invocation_context.invocation_id, None)) is not None:
            await run.turn.drop(error)

    async def _tell(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, told: Mapping[str, Any]
    ) -> None:
        run, call_id = self._runs.get(context.invocation_id), context.function_call_id or ""
        # A failure that another callback answers arrives again, as a result.
        if run is not None and call_id not in run.told:
            run.told.update({call_id} - {""})
            await run.turn.tool_result(tool.name, call_id=call_id, arguments=arguments, **told)


class _PluginTool(BaseTool):
    """A plugin's tool for one request. It holds no turn, because ADK may keep it longer."""

    def __init__(self, offered: OfferedTool, runs: Mapping[str, _Run]) -> None:
        super().__init__(name=offered.name, description=offered.description)
        self._parameters = offered.parameters
        self._runs = runs

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> object:
        """Run the tool; return a failure as a result."""
        if (run := self._runs.get(tool_context.invocation_id)) is None:
            return {"error": f"{MARK} {self.name}: the turn of this call is over"}
        text = await run.turn.run_tool(self.name, args, call_id=tool_context.function_call_id)
        return {"error": text} if text.startswith(MARK) else text


def _forget(runs: dict[str, _Run], key: str, run: _Run) -> None:
    if runs.get(key) is run:
        del runs[key]


def _text(content: types.Content | None, between: str = "\n") -> str:
    """Return the texts of a content, without thoughts."""
    parts = (content.parts if content is not None else None) or ()
    return between.join(part.text for part in parts if part.text and not part.thought)


def _history(events: Iterable[Event]) -> list[tuple[str, str]]:
    said = (event for event in events if not event.partial)
    return [("user" if event.author == "user" else "assistant", _text(event.content)) for event in said]


def _waits(events: Iterable[Event]) -> bool:
    """Whether a call of the run still lacks an answer."""
    called: set[str] = set()
    for event in events:
        called |= event.long_running_tool_ids or set()
        called -= {each.id for each in event.get_function_responses() if each.id}
    return bool(called)


def _ends(event: Event) -> bool:
    return event.is_final_response() and bool(event.error_code or _answer(event))


def _answer(event: Event) -> str:
    """Return the answer in an event: a text, else the JSON of a node's output or of a tool's result."""
    if text := _text(event.content, ""):
        return text
    values = [event.output, *(each.response for each in event.get_function_responses())]
    value = next((each for each in values if each is not None), None)
    return text_of(value)


def _takes_functions(config: types.GenerateContentConfig) -> bool:
    """Whether a request may offer functions: providers refuse them beside built-in tools or a response schema."""
    if config.response_schema is not None or config.response_json_schema is not None:
        return False
    return all(isinstance(each, types.Tool) and each.function_declarations for each in config.tools or ())
