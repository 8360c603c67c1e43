"""An agent of the OpenAI Agents SDK with a scripted model."""

import asyncio
import itertools
import json

import attrs
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    output_guardrail,
)
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from conformance.scripted import HostedHarness, pieces
from openai.types.responses import Response, ResponseCompletedEvent, ResponseTextDeltaEvent

from beaver_hooks.adapters.openai_agents import CARD, BeaverRunner
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, CallTool


@function_tool
def echo(text: str) -> str:
    """Return a text."""
    return text


@function_tool
def broken() -> str:
    """Raise."""
    raise RuntimeError("this tool is broken")


@output_guardrail
def guardrail(context, agent, output):
    """Trip where the context says so."""
    blocked = (context.context or {}).get("blocked", False)
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=blocked)


def texts(items):
    """Return role and text of each text of the user and the assistant."""
    said = []
    for each in items:
        if each.get("role") in {"user", "assistant"}:
            content = each["content"]
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            said += [(each["role"], text) for text in parts if text]
    return said


class ScriptedModel(Model):
    """Answers by the harness's script; every item has its own id."""

    def __init__(self, harness):
        self._harness = harness
        self._ids = itertools.count()

    async def _next(self, *, system_instructions, tools, **given):
        said = texts(given["input"])
        self._harness.asked(system_instructions or "", said, [tool.name for tool in tools])
        return await self._harness.scripts.step_for([text for _, text in said])

    def _item(self, step):
        name = f"item-{next(self._ids)}"
        if isinstance(step, CallTool):
            return function_call(step.tool, dict(step.arguments), call_id=step.id, item_id=name)
        return assistant_message(step.text, item_id=name)

    async def get_response(self, **given):
        step = await self._next(**given)
        return ModelResponse(output=[self._item(step)], usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions, items, settings, tools, *rest, **more):
        step = await self._next(system_instructions=system_instructions, input=items, tools=tools)
        item = self._item(step)
        for number, piece in enumerate([] if isinstance(step, CallTool) else pieces(step)):
            yield delta(item, number, piece)
            await asyncio.sleep(0)
        yield completed(item)


def delta(item, number, piece):
    return ResponseTextDeltaEvent(
        type="response.output_text.delta",
        item_id=item.id,
        output_index=0,
        content_index=0,
        delta=piece,
        logprobs=[],
        sequence_number=number,
    )


def completed(item):
    response = Response(
        id="response",
        created_at=0,
        model="scripted",
        object="response",
        output=[item],
        tool_choice="none",
        tools=[],
        parallel_tool_calls=False,
    )
    return ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1000)


class OpenaiAgentsHarness(HostedHarness):
    """The agent keeps its history in sessions of the SDK."""

    card = CARD

    def __init__(self):
        super().__init__()
        self.sessions = {}

    def build(self, **more):
        self.close_sessions()
        self.runner = Runner if self.host is None else BeaverRunner(self.host, **self.defaults)
        plugins = [] if self.host is None else self.runner.tools
        self.agent = Agent(
            name="agent",
            instructions=BASE,
            model=ScriptedModel(self),
            tools=[echo, broken, *plugins],
            output_guardrails=[guardrail],
            **more,
        )

    def session(self, name):
        """Return the session of a name, a new one the first time."""
        if name not in self.sessions:
            self.sessions[name] = SQLiteSession(name)
        return self.sessions[name]

    def options(self, ask):
        """Return the arguments of the runner's call."""
        return {
            "session": self.session(ask.session),
            "context": {"user_id": ask.user, "blocked": ask.blocked},
            "run_config": RunConfig(tracing_disabled=True),
        }

    async def run(self, ask):
        self.scripts.begin(ask)
        options = self.options(ask)
        if ask.way == "sync":
            return await asyncio.to_thread(in_a_loop_of_its_own, self.runner.run_sync, self.agent, ask.prompt, options)
        if ask.way in {"stream", "break_off"}:
            return await self._stream(ask, options)
        return (await self.runner.run(self.agent, ask.prompt, **options)).final_output

    async def _stream(self, ask, options):
        heard = []
        result = self.runner.run_streamed(self.agent, ask.prompt, **options)
        events = result.stream_events()
        async for event in events:
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                heard.append(event.data.delta)
            if heard and ask.way == "break_off":
                break
        await events.aclose()
        return "".join(heard)

    async def stored(self, session):
        items = json.loads(json.dumps(await self.session(session).get_items()))
        return [Message(role=role, text=text) for role, text in texts(items)]

    async def close(self):
        await super().close()
        self.close_sessions()

    def close_sessions(self):
        for each in self.sessions.values():
            each.close()
        self.sessions = {}


def in_a_loop_of_its_own(run_sync, agent, prompt, options):
    """Run without an event loop; the SDK leaves the loop that it makes for a thread open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return run_sync(agent, prompt, **options).final_output
    finally:
        asyncio.set_event_loop(None)
        loop.close()


class OpenaiAgentsInLoopHarness(OpenaiAgentsHarness):
    """The same harness, with a `Host` on the agent's own loop."""

    in_loop = True
    card = attrs.evolve(CARD, sync=False, notes={**CARD.notes, "sync": "A `Host` has no way in without its loop."})
