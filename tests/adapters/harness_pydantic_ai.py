"""A pydantic-ai agent with a scripted model, for both majors."""

import asyncio
import json

import attrs
from conformance.scripted import HostedHarness, pieces
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from beaver_hooks.adapters.pydantic_ai import CARD, BeaverMemory
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, CallTool


class Refused(Exception):
    """What the agent's output validator raises."""


def texts(messages):
    """Return roles and texts of messages, one for each part."""
    said = []
    for message in messages:
        for part in message.parts:
            if isinstance(message, ModelRequest) and isinstance(part, UserPromptPart):
                contents = [part.content] if isinstance(part.content, str) else part.content
                said += [("user", text) for text in contents if isinstance(text, str)]
            elif isinstance(message, ModelResponse) and isinstance(part, TextPart):
                said.append(("assistant", part.content))
    return said


def guardrail(ctx, output):
    if (ctx.metadata or {}).get("blocked"):
        raise Refused("the answer is refused")
    return output


def echo(text: str) -> str:
    """Return a text."""
    return text


def broken() -> str:
    """Raise, as tools of pydantic-ai do whose failure the model is to see."""
    raise ModelRetry("this tool is broken")


class PydanticAIHarness(HostedHarness):
    """The agent keeps its history as pydantic-ai writes it down: JSON of the messages of a run."""

    card = CARD

    def build(self, **more):
        self.histories = {}
        self.memory = [] if self.host is None else [BeaverMemory(self.host, **self.defaults)]
        capabilities = [*self.memory, *more.pop("capabilities", [])]
        self.agent = Agent(
            FunctionModel(self._answer, stream_function=self._stream),
            instructions=BASE,
            tools=[echo, broken],
            capabilities=capabilities,
            **more,
        )
        self.agent.output_validator(guardrail)

    async def run(self, ask):
        self.scripts.begin(ask)
        fields = self.fields(ask)
        if ask.way == "sync":
            return await asyncio.to_thread(self._run_sync, ask, fields)
        if ask.way in {"stream", "break_off"}:
            return await self._run_stream(ask, fields)
        result = await self.agent.run(ask.prompt, **fields)
        self._store(ask.session, result)
        return result.output

    def fields(self, ask):
        metadata = {"user_id": ask.user, "blocked": ask.blocked}
        history = ModelMessagesTypeAdapter.validate_json(self.histories.get(ask.session, b"[]"))
        return {"conversation_id": ask.session, "metadata": metadata, "message_history": history}

    def _run_sync(self, ask, fields):
        # The framework leaves the loop that it makes for a thread open.
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            result = self.agent.run_sync(ask.prompt, **fields)
        finally:
            asyncio.set_event_loop(None)
            loop.close()
        self._store(ask.session, result)
        return result.output

    async def _run_stream(self, ask, fields):
        heard = []
        async with self.agent.run_stream(ask.prompt, **fields) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                heard.append(piece)
                if ask.way == "break_off":
                    break
            else:
                self._store(ask.session, result)
        return "".join(heard)

    def _store(self, session, result):
        self.histories[session] = result.all_messages_json()

    async def stored(self, session):
        messages = ModelMessagesTypeAdapter.validate_json(self.histories.get(session, b"[]"))
        return [Message(role=role, text=text) for role, text in texts(messages)]

    async def _next(self, messages, info):
        said = texts(messages)
        self.asked(info.instructions or "", said, [tool.name for tool in info.function_tools])
        return await self.scripts.step_for([text for _, text in said])

    async def _answer(self, messages, info):
        step = await self._next(messages, info)
        if isinstance(step, CallTool):
            return ModelResponse(parts=[ToolCallPart(step.tool, dict(step.arguments), step.id)])
        return ModelResponse(parts=[TextPart(step.text)])

    async def _stream(self, messages, info):
        step = await self._next(messages, info)
        if isinstance(step, CallTool):
            yield {0: DeltaToolCall(step.tool, json.dumps(dict(step.arguments)), tool_call_id=step.id)}
            return
        for piece in pieces(step):
            yield piece
            await asyncio.sleep(0)


class PydanticAIInLoopHarness(PydanticAIHarness):
    """The same with a `Host` of the agent's own loop."""

    in_loop = True
    card = attrs.evolve(CARD, sync=False, notes={**CARD.notes, "sync": "A `Host` has no way in without its loop."})
