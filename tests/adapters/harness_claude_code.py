"""The real Claude Code with its hooks installed, over a model that follows a script.

The command, the hooks, the client and the resident's socket are real. The resident itself runs in this process, so that
the suite can put its plugins into it and look at them. Sessions and tools have other names in Claude Code than in the
suite (UUIDs, and a prefix for the tools of a server): they are translated before the resident handles events.
"""

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

from adapters.fake_anthropic import called, cli, environment, hanging, refused, said, serve, system, texts
from conformance.scripted import Scripts

from beaver_hooks import Host
from beaver_hooks.coding_agents.claude_code.capabilities import CARD
from beaver_hooks.coding_agents.claude_code.client import socket_path
from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hooks.coding_agents.claude_code.installer import Installation, commands
from beaver_hooks.coding_agents.claude_code.memory import ResidentMemory
from beaver_hooks.coding_agents.claude_code.resident import Resident
from beaver_hooks.coding_agents.claude_code.resident_socket import SocketPath
from beaver_hostspecs import HostNotOpen, Message
from beaver_hostspecs.conformance import BASE, BROKEN, ECHO, Ask, CallTool, Fail, Hang, ModelCall

MODEL = "claude-haiku-4-5"
SERVER = "suite"
PREFIX = f"mcp__{SERVER}__"
TIMEOUT = 25

# Small, so that it starts faster than one that is made of the SDK.
TOOLS = """
import json, sys
TOOLS = [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
         {"name": "broken", "inputSchema": {"type": "object", "properties": {}}}]
for line in sys.stdin:
    asked = json.loads(line)
    given = asked.get("params") or {}
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        info = {"name": "suite", "version": "1"}
        result = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif asked["method"] == "tools/call":
        broken = given["name"] == "broken"
        text = "this tool is broken" if broken else given["arguments"].get("text", "")
        result = {"content": [{"type": "text", "text": text}], "isError": broken}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


class NotAnswered(Exception):
    """Claude Code ended with an error, or blocked the prompt."""


class Renamed:
    """The memory of a resident, which receives events under the names that the suite uses."""

    def __init__(self, memory, sessions):
        self._memory = memory
        self._sessions = sessions
        self.status, self.close, self.resting = memory.status, memory.close, False

    async def handle(self, event):
        return await self._memory.handle(renamed(event, self._sessions))


def renamed(event, sessions):
    """Return an event with the suite's names of session and tool."""
    names = {uuid: name for name, uuid in sessions.items()}
    event = {**event, "session_id": names.get(event.get("session_id"), event.get("session_id"))}
    if "tool_name" in event:
        event["tool_name"] = event["tool_name"].removeprefix(PREFIX)
    return event


class Scripted:
    """The model: follows the script of each caller, and records its requests."""

    def __init__(self):
        self.calls = []
        self.scripts = Scripts()
        self.breaking = self.compacting = False

    async def answer(self, request):
        """Return the next step of the script, as the API would answer it."""
        if self.compacting:
            return said("<summary>They have talked.</summary>")
        told = texts(request)
        messages = tuple(Message(role=role, text=text) for role, text in told)
        tools = [each["name"].removeprefix(PREFIX) for each in request["tools"]]
        self.calls.append(ModelCall(system=system(request), messages=messages, tools=tools))
        try:
            step = self.scripts.next_for([text for _, text in told])
        except StopIteration:
            step = Fail()  # Claude Code asks once more, in another way
        if isinstance(step, Fail):
            return refused()
        if isinstance(step, Hang):
            return hanging()
        if isinstance(step, CallTool):
            return called(PREFIX + step.tool, dict(step.arguments), call_id=f"toolu_{uuid4().hex}")
        return hanging(step.text) if self.breaking else said(step.text)


class ClaudeCodeHarness:
    """Claude Code in print mode, one process for each prompt; sessions are resumed."""

    card = CARD

    def __init__(self):
        self.model = Scripted()
        self.calls = self.model.calls
        self.folder = Path(tempfile.mkdtemp(prefix="bh-"))
        self.sessions, self.begun = {}, set()
        self.stack = contextlib.AsyncExitStack()
        self.host = self.resident = None

    async def open(self, plugins, fail_closed=()):
        await self._prepare()
        self.host = Host(plugins, fail_closed=fail_closed, state_folder=self.folder / "kept" / uuid4().hex)
        await self.host.open()
        host = self.host

        async def open_turns():
            return ClaudeCodeTurns(host=host)

        place = SocketPath.take(Path(socket_path([], {**self.environment, "CLAUDE_PROJECT_DIR": str(self.project)})))
        self.resident = Resident(Renamed(ResidentMemory(open_turns, lambda: None), self.sessions), idle=600)
        self.serving = asyncio.create_task(self.resident.serve(place))
        self._installation().install(commands([]))

    async def open_plain(self):
        await self._prepare()
        self._installation().uninstall()

    async def run(self, ask):
        self.model.scripts.begin(ask)
        self.model.breaking = ask.way == "break_off"
        command = [str(each) for each in self._command(ask)]
        if ask.way == "sync":
            return await asyncio.to_thread(self._run_sync, command)
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.project, env=self.environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1 << 24,
        )  # fmt: skip
        try:
            if ask.way == "break_off":
                return await first_piece(process.stdout)
            out, _ = await process.communicate()
            return answer_of(out, process.returncode, streamed=ask.way == "stream")
        finally:
            await ended(process)

    async def compact(self, session, user):
        self.model.compacting = True
        command = [str(each) for each in self._command(Ask(prompt="/compact", steps=(), session=session, user=user))]
        await asyncio.to_thread(self._run_through, command)
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
        resident, host, self.resident, self.host = self.resident, self.host, None, None
        if resident is not None:
            resident.end()
            await self.serving
            with contextlib.suppress(HostNotOpen):  # the resident has closed it, if it was ever asked
                await host.close()
        await self.stack.aclose()
        self.stack = contextlib.AsyncExitStack()
        self.sessions.clear()
        self.begun.clear()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _prepare(self):
        fake = await self.stack.enter_async_context(serve(answer=self.model.answer))
        self.project = self.folder / "project"
        for each in (self.project, self.folder / "claude", self.folder / "run"):
            each.mkdir(parents=True, exist_ok=True)
        self.environment = environment(self.folder, fake.base_url) | {"XDG_RUNTIME_DIR": str(self.folder / "run")}
        (self.folder / "tools.py").write_text(TOOLS)
        server = {"command": sys.executable, "args": ["-I", "-S", str(self.folder / "tools.py")]}
        (self.folder / "mcp.json").write_text(json.dumps({"mcpServers": {SERVER: server}}))

    def _installation(self):
        return Installation(self.folder / "claude" / "settings.json", self.environment)

    def _command(self, ask):
        session = self.sessions.setdefault(ask.session, str(uuid4()))
        names = "--resume" if session in self.begun else "--session-id"
        self.begun.add(session)
        streams = ask.way in {"stream", "break_off"}
        yield from (cli(), "-p", ask.prompt, "--model", MODEL, "--system-prompt", BASE, names, session)
        yield from ("--mcp-config", self.folder / "mcp.json", "--strict-mcp-config")
        yield from ("--allowedTools", f"{PREFIX}{ECHO},{PREFIX}{BROKEN}", "--output-format")
        yield from ("stream-json", "--verbose", "--include-partial-messages") if streams else ("json",)

    def _run_sync(self, command):
        ran = self._run_through(command)
        return answer_of(ran.stdout, ran.returncode, streamed=False)

    def _run_through(self, command):
        return subprocess.run(
            command, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )


def answer_of(out, code, *, streamed):
    """Return the answer that Claude Code printed."""
    lines = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    result = next((each for each in lines if each.get("type") == "result"), {})
    if code or result.get("is_error") or not result.get("num_turns"):
        raise NotAnswered(out.decode())
    return "".join(map(piece, lines)) if streamed else result["result"]


def piece(line):
    """Return the piece of an answer that is in a line of a stream."""
    event = line.get("event", {}) if line.get("type") == "stream_event" else {}
    return event.get("delta", {}).get("text", "")


async def first_piece(stream):
    """Return the first piece of an answer that is streamed."""
    async for line in stream:
        if line.startswith(b"{") and (found := piece(json.loads(line))):
            return found
    raise NotAnswered("nothing came")


async def ended(process):
    """Terminate a process, close its output, and wait for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process._transport.get_pipe_transport(1).close()
        await process.wait()
