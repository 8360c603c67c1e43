"""The reference agent, with a scripted provider."""

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from conformance.scripted import Scripts, pieces

from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.agent.messages import Completion
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import Message, Tool
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, Ask, CallTool, Card, ModelCall
from beaver_hostspecs.testing import RecordingPlugin

CARD = Card(
    host="reference agent",
    sees_blocks=False,
    sync=False,
    plain=False,
    notes={
        "sees_blocks": "The reference agent has no output guardrails.",
        "sync": "The reference agent is asynchronous; `beaver run` is its other entry point.",
        "plain": "The reference agent always has a host.",
        "announces_compaction": "It sends the last messages of a session, and summarises none.",
    },
)


class ScriptedProvider:
    def __init__(self, calls: list[ModelCall]) -> None:
        self.calls = calls
        self.scripts = Scripts()

    async def complete(self, messages, *, tools=(), on_delta=None):
        system = "\n\n".join(each.text for each in messages if each.role == "system")
        shown = [each for each in messages if each.role in {"user", "assistant"} and each.text]
        said = tuple(Message(role=each.role, text=each.text) for each in shown)
        self.calls.append(ModelCall(system=system, messages=said, tools=[each["name"] for each in tools]))
        step = await self.scripts.step_for([each.text for each in shown])
        if isinstance(step, CallTool):
            call = ToolCall(id=step.id, name=step.tool, arguments=json.dumps(dict(step.arguments)))
            return Completion(text="", tool_calls=(call,))
        for piece in pieces(step) if on_delta else ():
            on_delta(piece)
            await asyncio.sleep(0)
        return Completion(text=step.text, finish_reason="stop")

    async def close(self):
        pass


async def _echo(arguments, turn, report):
    return arguments["text"]


async def _broken(arguments, turn, report):
    raise RuntimeError("this tool is broken")


def host_tools():
    """The tools that each harness brings, as a plugin."""
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return RecordingPlugin(
        tools=[
            Tool(name=ECHO, description="Return a text.", parameters=text, run=_echo),
            Tool(name=BROKEN, description="Raise.", parameters={"type": "object"}, run=_broken),
        ]
    )


class AgentHarness:
    card = CARD

    def __init__(self) -> None:
        self.calls = []
        self._stack = contextlib.AsyncExitStack()

    async def open(self, plugins, fail_closed=()):
        folder = Path(tempfile.mkdtemp(prefix="beaver-conformance-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        config = folder / "config.json"
        settings = {
            "memory": {"mode": "curated"},
            "agent": {"systemPrompt": BASE},
            "host": {"stateFolder": str(folder)},
        }
        config.write_text(json.dumps({**settings, "provider": {"kind": "offline"}}))
        self.engine = await EngineLoader(config, environment={}).load()
        self._stack.push_async_callback(self.engine.close)
        for name, plugin in {"tools": host_tools(), **plugins}.items():
            await self.engine.host.register(name, plugin, fail_closed=name in fail_closed)
        self.engine.provider = ScriptedProvider(self.calls)
        self.loop = AgentLoop(self.engine)

    async def open_plain(self):
        raise AssertionError("the card says that there is no such thing")

    async def run(self, ask: Ask) -> str:
        self.engine.provider.scripts.begin(ask)
        if ask.way == "break_off":
            return await self._break_off(ask)
        heard: list[str] = []
        on_delta = heard.append if ask.way == "stream" else None
        result = await self.loop.run(ask.prompt, ask.session, ask.user, on_delta=on_delta)
        assert "".join(heard).strip().endswith(result.text) or on_delta is None
        return result.text

    async def _break_off(self, ask: Ask) -> str:
        heard: asyncio.Queue[str] = asyncio.Queue()
        task = asyncio.create_task(self.loop.run(ask.prompt, ask.session, ask.user, on_delta=heard.put_nowait))
        first = await heard.get()
        task.cancel()
        await asyncio.wait([task])
        return first

    async def stored(self, session):
        found = await self.engine.sessions.history(session)
        return [Message(role=each.role, text=each.text) for each in found]

    async def settle(self):
        await self.engine.host.drain(5)

    async def unregister(self, plugin):
        await self.engine.host.unregister(plugin)

    async def unwell(self):
        return {name for name, each in self.engine.host.health().items() if each.state != "ok"}

    async def close(self):
        await self._stack.aclose()
