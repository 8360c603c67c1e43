"""Strands, with a scripted model and its own session files."""

import asyncio
import json
import shutil
import tempfile

import attrs
from conformance.scripted import HostedHarness, Scripts, pieces
from strands import Agent, tool
from strands.hooks import AfterModelCallEvent
from strands.models.model import Model
from strands.session import FileSessionManager

from beaver_hooks.adapters.strands import CARD, BeaverPlugin
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, Ask, CallTool


class Blocked(Exception):
    """What the harness's guardrail raises."""


@tool
def echo(text: str) -> str:
    """Return a text."""
    return text


@tool
def broken() -> str:
    """Raise."""
    raise RuntimeError("this tool is broken")


def texts(messages):
    """Roles and texts of messages in the spelling of Strands."""
    return [(each["role"], block["text"]) for each in messages for block in each["content"] if "text" in block]


class ScriptedModel(Model):
    """Answers as the script says, and remembers what it was asked, as it was asked."""

    def __init__(self, scripts=None, asked=None):
        self.scripts = scripts or Scripts()
        self.asked = asked or (lambda *_: None)
        self.requests = []

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *_, **__):
        yield {}

    async def stream(self, messages, tool_specs=None, system_prompt=None, **_):
        self.requests.append({"messages": messages, "tools": tool_specs, "system": system_prompt})
        self.asked(system_prompt or "", texts(messages), [each["name"] for each in tool_specs or ()])
        step = await self.scripts.step_for([text for _, text in texts(messages)])
        yield {"messageStart": {"role": "assistant"}}
        for event in events_of(step):
            await asyncio.sleep(0)
            yield event


def events_of(step):
    """What a model streams for a step; a list is streamed as it is."""
    if isinstance(step, list):
        return step
    return list(_call(step) if isinstance(step, CallTool) else _said(step))


def _call(step):
    yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": step.id, "name": step.tool}}}}
    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(step.arguments))}}}}
    yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "tool_use"}}


def _said(step):
    yield {"contentBlockStart": {"start": {}}}
    for piece in pieces(step):
        yield {"contentBlockDelta": {"delta": {"text": piece}}}
    yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "end_turn"}}


class StrandsHarness(HostedHarness):
    card = CARD

    def __init__(self):
        super().__init__()
        self.sessions = None

    def build(self):
        self.sessions = tempfile.mkdtemp(prefix="beaver-strands-")
        self.plugins = [] if self.host is None else [BeaverPlugin(self.host, **self.defaults)]

    def agent(self, session, blocked=False):
        """An agent as an application makes one for a request: the session manager brings the history."""
        agent = Agent(
            model=ScriptedModel(self.scripts, self.asked),
            tools=[echo, broken],
            system_prompt=BASE,
            plugins=self.plugins,
            session_manager=FileSessionManager(session_id=session, storage_dir=self.sessions),
            callback_handler=None,
        )
        if blocked:
            agent.add_hook(_refuse, AfterModelCallEvent)
        return agent

    async def run(self, ask: Ask) -> str:
        self.scripts.begin(ask)
        agent, state = self.agent(ask.session, ask.blocked), {"user_id": ask.user}
        if ask.way == "sync":
            return str(await asyncio.to_thread(agent, ask.prompt, invocation_state=state)).strip()
        if ask.way == "whole":
            return str(await agent.invoke_async(ask.prompt, invocation_state=state)).strip()
        stream, heard = agent.stream_async(ask.prompt, invocation_state=state), []
        async for event in stream:
            heard += [event["data"]] if "data" in event else []
            if heard and ask.way == "break_off":
                break
        await stream.aclose()
        return "".join(heard)

    async def stored(self, session):
        return [Message(role=role, text=text) for role, text in texts(self.agent(session).messages)]

    async def close(self):
        await super().close()
        if self.sessions is not None:
            await asyncio.to_thread(shutil.rmtree, self.sessions, ignore_errors=True)
            self.sessions = None


class StrandsInLoopHarness(StrandsHarness):
    in_loop = True
    card = attrs.evolve(CARD, sync=False, notes={**CARD.notes, "sync": "A Host is used in its own event loop."})


async def _refuse(event: AfterModelCallEvent):
    if event.stop_response is not None:
        raise Blocked("the guardrail refuses the answer")
