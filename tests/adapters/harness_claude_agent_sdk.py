"""An agent on claude-agent-sdk, with the real `claude` that it bundles, over a model that follows a script."""

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

from adapters.fake_anthropic import environment, serve
from adapters.harness_claude_code import MODEL, PREFIX, SERVER, NotAnswered, Scripted, renamed
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool
from claude_agent_sdk.types import StreamEvent

from beaver_hooks import Host
from beaver_hooks.adapters.claude_agent_sdk import CARD, claude_agent_memory
from beaver_hostspecs import Message
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, Ask


@tool(ECHO, "Return a text.", {"text": str})
async def echo(arguments):
    return {"content": [{"type": "text", "text": arguments["text"]}]}


@tool(BROKEN, "Raise.", {})
async def broken(arguments):
    raise RuntimeError("this tool is broken")


class RenamedTurns:
    """Passes events to the turns under the names that the suite uses."""

    def __init__(self, turns, sessions):
        self._turns = turns
        self._sessions = sessions

    async def handle(self, event):
        return await self._turns.handle(renamed(event, self._sessions))


class ClaudeAgentSdkHarness:
    """One client for each prompt, which resumes its session."""

    card = CARD

    def __init__(self):
        self.model = Scripted()
        self.calls = self.model.calls
        self.folder = Path(tempfile.mkdtemp(prefix="bh-"))
        self.sessions, self.begun = {}, set()
        self.stack = contextlib.AsyncExitStack()
        self.host = None

    async def open(self, plugins, fail_closed=()):
        await self._prepare()
        self.host = Host(plugins, fail_closed=fail_closed, state_folder=self.folder / "kept" / uuid4().hex)
        await self.host.open()

    async def open_plain(self):
        await self._prepare()

    async def run(self, ask):
        self.model.scripts.begin(ask)
        self.model.breaking = ask.way == "break_off"
        if self.host is None:
            return await self._converse(ask, self._options(ask, system_prompt=BASE))
        async with claude_agent_memory(self.host, trust="full", user=ask.user) as memory:
            prompt = memory.system_prompt(BASE)
            memory._turns = RenamedTurns(memory._turns, self.sessions)
            return await self._converse(ask, self._options(ask, system_prompt=prompt, hooks=memory.hooks))

    async def compact(self, session, user):
        ask = Ask(prompt="/compact", steps=(), session=session, user=user)
        self.model.compacting = True
        async with claude_agent_memory(self.host, trust="full", user=user) as memory:
            memory._turns = RenamedTurns(memory._turns, self.sessions)
            async with ClaudeSDKClient(self._options(ask, system_prompt=BASE, hooks=memory.hooks)) as client:
                await client.query(ask.prompt)
                async for _ in client.receive_response():
                    pass
        self.model.compacting = False

    async def stored(self, session):
        (path,) = (self.folder / "claude" / "projects").rglob(f"{self.sessions[session]}.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [
            Message(role="user", text=json.dumps(line.get("message", line.get("attachment", "")))) for line in lines
        ]

    async def settle(self):
        await self.host.drain(5)

    async def unregister(self, plugin):
        await self.host.unregister(plugin)

    async def unwell(self):
        return {name for name, each in self.host.health().items() if each.state != "ok"}

    async def close(self):
        host, self.host = self.host, None
        if host is not None:
            await host.close()
        await self.stack.aclose()
        self.stack = contextlib.AsyncExitStack()
        self.sessions.clear()
        self.begun.clear()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _prepare(self):
        fake = await self.stack.enter_async_context(serve(answer=self.model.answer))
        self.project = self.folder / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.environment = environment(self.folder, fake.base_url)

    def _options(self, ask, **more):
        session = self.sessions.setdefault(ask.session, str(uuid4()))
        name = "resume" if session in self.begun else "session_id"
        self.begun.add(session)
        return ClaudeAgentOptions(
            model=MODEL, cwd=self.project, env=self.environment, setting_sources=[], **{name: session},
            mcp_servers={SERVER: create_sdk_mcp_server(SERVER, tools=[echo, broken])},
            allowed_tools=[PREFIX + ECHO, PREFIX + BROKEN], include_partial_messages=ask.way in {"stream", "break_off"},
            **more,
        )  # fmt: skip

    async def _converse(self, ask, options):
        pieces = []
        async with ClaudeSDKClient(options) as client:
            await client.query(ask.prompt)
            async for message in client.receive_response():
                if isinstance(message, StreamEvent):
                    pieces += filter(None, [message.event.get("delta", {}).get("text")])
                if pieces and ask.way == "break_off":
                    break
                if isinstance(message, ResultMessage) and (message.is_error or not message.num_turns):
                    raise NotAnswered(message.result or "")
                if isinstance(message, ResultMessage) and not pieces:
                    return message.result
        return "".join(pieces)
