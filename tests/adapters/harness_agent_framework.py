"""A Microsoft agent-framework agent with a scripted chat client."""

import asyncio

import attrs
from agent_framework import (
    Agent,
    AgentMiddleware,
    BaseChatClient,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
    tool,
)
from conformance.scripted import HostedHarness, pieces

from beaver_hooks.adapters.agent_framework import CARD, BeaverContextProvider
from beaver_hostspecs import Message as Said
from beaver_hostspecs.conformance import BASE, CallTool


class Refused(Exception):
    """What the guardrail raises."""


class Guardrail(ChatMiddleware):
    """Refuses what the model answers, where the run says so."""

    async def process(self, context, call_next):
        await call_next()
        if (context.options or {}).get("metadata", {}).get("blocked"):
            raise Refused("the answer is refused")


class AgentGuardrail(AgentMiddleware):
    """Refuses what the agent answers, where the run says so."""

    async def process(self, context, call_next):
        await call_next()
        if (context.options or {}).get("metadata", {}).get("blocked"):
            raise Refused("the answer is refused")


def texts(messages):
    """Return roles and texts of messages, one for each text."""
    return [(str(each.role), part.text) for each in messages for part in each.contents if part.type == "text"]


@tool
def echo(text: str) -> str:
    """Return a text."""
    return text


@tool
def broken() -> str:
    """Raise."""
    raise RuntimeError("this tool is broken")


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self, next_step):
        super().__init__()
        self._next_step = next_step

    def _inner_get_response(self, *, messages, stream, options, **_):
        if stream:
            return ResponseStream(self._stream(messages, options), finalizer=ChatResponse.from_updates)
        return self._answer(messages, options)

    async def _answer(self, messages, options):
        step = await self._next_step(messages, options)
        return ChatResponse(messages=[Message("assistant", [self._content(step)])], response_id="r")

    async def _stream(self, messages, options):
        step = await self._next_step(messages, options)
        contents = [self._content(step)] if isinstance(step, CallTool) else map(Content.from_text, pieces(step))
        for content in contents:
            yield ChatResponseUpdate(contents=[content], role="assistant", response_id="r")
            await asyncio.sleep(0)

    def _content(self, step):
        if isinstance(step, CallTool):
            return Content.from_function_call(step.id, step.tool, arguments=dict(step.arguments))
        return Content.from_text(step.text)


class AgentFrameworkHarness(HostedHarness):
    """The agent keeps its history in `AgentSession`s, which are written down and read after each prompt."""

    card = CARD

    def build(self):
        self.sessions = {}
        memory = [] if self.host is None else [BeaverContextProvider(self.host, **self.defaults)]
        self.agent = Agent(
            client=ScriptedClient(self._next_step),
            instructions=BASE,
            tools=[echo, broken],
            context_providers=self.providers(memory),
            middleware=self.middleware(memory),
        )

    def providers(self, memory):
        return [InMemoryHistoryProvider(), *memory]

    def middleware(self, memory):
        return [Guardrail()]

    async def run(self, ask):
        self.scripts.begin(ask)
        session = self.sessions.get(ask.session) or self.agent.create_session(session_id=ask.session)
        fields = {"session": session, "options": {"user": ask.user, "metadata": {"blocked": ask.blocked}}}
        if ask.way == "whole":
            seen = (await self.agent.run(ask.prompt, **fields)).text
        else:
            seen = await self._stream(ask, self.agent.run(ask.prompt, stream=True, **fields))
        self.sessions[ask.session] = type(session).from_dict(session.to_dict())
        return seen

    async def _stream(self, ask, stream):
        heard = []
        async for update in stream:
            heard.append(update.text)
            if ask.way == "break_off":
                await stream.close()
                break
        return "".join(heard)

    async def stored(self, session):
        found = self.sessions.get(session)
        messages = [] if found is None else found.state["in_memory"]["messages"]
        return [Said(role=role, text=text) for role, text in texts(messages) if role in {"user", "assistant"}]

    async def settle(self):
        await asyncio.sleep(0)  # a turn that the framework let go of is dropped in the loop's next round
        await super().settle()

    async def _next_step(self, messages, options):
        said = [(role, text) for role, text in texts(messages) if role in {"user", "assistant"}]
        self.asked(options.get("instructions") or "", said, [each.name for each in options.get("tools") or ()])
        return await self.scripts.step_for([text for _, text in said])


class AgentFrameworkInLoopHarness(AgentFrameworkHarness):
    """The same with a `Host` of the agent's own loop, listed before the history, and as an agent middleware too."""

    in_loop = True
    card = attrs.evolve(CARD)

    def providers(self, memory):
        return [*memory, InMemoryHistoryProvider()]

    def middleware(self, memory):
        return [*memory, AgentGuardrail()]
