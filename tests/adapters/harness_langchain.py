"""A LangChain agent with a scripted chat model."""

import asyncio

import attrs
from conformance.scripted import HostedHarness, ModelDown, pieces
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolErrorMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from beaver_hooks.adapters.langchain import CARD, BeaverMiddleware
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, CallTool, Fail, Hang

REFUSAL = "I cannot say that."


@tool
def echo(text: str) -> str:
    """Return a text."""
    return text


@tool
def broken() -> str:
    """Raise."""
    raise RuntimeError("this tool is broken")


def texts(messages):
    """Return roles and texts of the messages of the user and the assistant."""
    roles = {HumanMessage: "user", AIMessage: "assistant"}
    said = [(roles[type(each)], str(each.text)) for each in messages if type(each) in roles]
    return [(role, text) for role, text in said if text]


class ScriptedModel(BaseChatModel):
    """Answers as the harness's script says."""

    harness: object
    offered: tuple[str, ...] = ()

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self.model_copy(update={"offered": tuple(each.name for each in tools)})

    def _next(self, messages):
        system = "\n\n".join(str(each.text) for each in messages if isinstance(each, SystemMessage))
        said = texts(messages)
        self.harness.asked(system, said, list(self.offered))
        return [text for _, text in said]

    def _generate(self, messages, *args, **kwargs):
        step = self.harness.scripts.next_for(self._next(messages))
        if isinstance(step, Fail):
            raise ModelDown("the model is down")
        assert not isinstance(step, Hang)
        return result(step)

    async def _agenerate(self, messages, *args, **kwargs):
        return result(await self.harness.scripts.step_for(self._next(messages)))

    async def _astream(self, messages, *args, **kwargs):
        step = await self.harness.scripts.step_for(self._next(messages))
        if isinstance(step, CallTool):
            message = result(step).generations[0].message
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_calls=message.tool_calls))
            return
        for piece in pieces(step):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
            await asyncio.sleep(0)


def result(step):
    """Return the model's answer for a step."""
    if isinstance(step, CallTool):
        message = AIMessage("", tool_calls=[{"name": step.tool, "args": dict(step.arguments), "id": step.id}])
    else:
        message = AIMessage(step.text)
    return ChatResult(generations=[ChatGeneration(message=message)])


class Guardrail(AgentMiddleware):
    """Replaces a blocked answer with a refusal."""

    def after_agent(self, state, runtime):
        return {"messages": [AIMessage(REFUSAL)]} if (runtime.context or {}).get("blocked") else None


class LangchainHarness(HostedHarness):
    """The agent keeps its history in a checkpointer."""

    card = CARD

    def build(self, *, before=(), after=(), **more):
        self.saver = more.pop("checkpointer", None) or InMemorySaver()
        memory = [] if self.host is None else [BeaverMiddleware(self.host, **self.defaults)]
        errors = ToolErrorMiddleware(lambda error, request: f"{request.tool_call['name']} failed")
        self.agent = create_agent(
            ScriptedModel(harness=self),
            tools=more.pop("tools", [echo, broken]),
            system_prompt=BASE,
            middleware=[*before, *memory, *after, errors, Guardrail()],
            checkpointer=self.saver,
            **more,
        )

    def arguments(self, ask):
        """Return the arguments of the agent's call."""
        return {
            "input": {"messages": [("user", ask.prompt)]},
            "config": {"configurable": {"thread_id": ask.session}},
            "context": {"user_id": ask.user, "blocked": ask.blocked},
        }

    async def run(self, ask):
        self.scripts.begin(ask)
        given = self.arguments(ask)
        if ask.way in {"stream", "break_off"}:
            return await self._stream(given, whole=ask.way == "stream")
        if ask.way == "sync":
            return said(await asyncio.to_thread(self.agent.invoke, **given))
        return said(await self.agent.ainvoke(**given))

    async def _stream(self, given, *, whole):
        heard = []
        stream = self.agent.astream(**given, stream_mode="messages")
        async for chunk, _ in stream:
            if isinstance(chunk, AIMessageChunk):
                heard.append(str(chunk.text))
            if heard and heard[-1] and not whole:
                break
        await stream.aclose()
        return "".join(heard)

    async def stored(self, session):
        state = await self.agent.aget_state({"configurable": {"thread_id": session}})
        return [Message(role=role, text=text) for role, text in texts(state.values["messages"])]


def said(result):
    """Return the answer of a run."""
    return str(result["messages"][-1].text)


class LangchainInLoopHarness(LangchainHarness):
    """The same harness, with a `Host` on the agent's own loop."""

    in_loop = True
    card = attrs.evolve(CARD, sync=False, notes={**CARD.notes, "sync": "A `Host` has no way in without its loop."})
