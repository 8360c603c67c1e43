"""The ways into memory, each driven as its users drive it: what it shows, offers and does for one user at one trust."""

import asyncio
import json
import os
import pkgutil
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
from adapters.harness_agent_framework import AgentFrameworkHarness
from adapters.harness_google_adk import GoogleAdkHarness
from adapters.harness_langchain import LangchainHarness
from adapters.harness_openai_agents import OpenaiAgentsHarness
from adapters.harness_pydantic_ai import PydanticAIHarness
from adapters.harness_strands import StrandsHarness
from adapters.trust_world import ARGUMENTS, KEY, PROMPT
from conformance.harness_agent import ScriptedProvider
from conformance.harness_plain import PlainHarness
from integration.openai_server import call, serve, whole
from mcp import MCPError
from mcp.client import Client

from beaver_hooks import SyncHost, adapters, coding_agents
from beaver_hooks.adapters.claude_agent_sdk import claude_agent_memory
from beaver_hooks.adapters.mcp_server import Identity, MemoryServer
from beaver_hooks.agent.conversation import Conversation
from beaver_hooks.agent.factory import EngineLoader
from beaver_hooks.agent.loop import AgentLoop
from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hostspecs import BeaverError, CommandContext, Trust
from beaver_hostspecs.conformance import Ask, CallTool, Say
from beaver_hostspecs.testing import RecordingPlugin

HELPERS = {"adapter_turn", "core", "texts"}
"""Modules among the adapters that are none."""

COMMANDS = {("curated", "show"): (), ("local", "list"): ()}
"""The commands by which a person reads each memory."""


@attrs.define(kw_only=True)
class Seen:
    """What one entrance did for one user at one trust; `None` is what it has no way for.

    Attributes:
        shown: all that the model was sent for a prompt, or the user was shown.
        offered: the tools that were offered.
        returned: what each tool returned.
        commands: what each command showed; an empty text where it was refused.
    """

    shown: str | None = None
    offered: frozenset[str] | None = None
    returned: dict[str, str] | None = None
    commands: dict[str, str] | None = None


def found_adapters():
    """Return the names of the adapters and the coding agents that there are."""
    return {each.name for each in pkgutil.iter_modules([*adapters.__path__, *coding_agents.__path__])} - HELPERS


def steps_of(name):
    """Return the steps of a scripted model that calls a tool once."""
    return [CallTool(tool=name, arguments=ARGUMENTS[name], id=f"call-{name}"), Say(text="Done.")]


class Watching(RecordingPlugin):
    """Records the results of tools."""

    def returned(self):
        results = [call.arguments["result"] for call in self.calls_of("on_tool_result")]
        return {each.tool: f"{each.output}{each.error or ''}" for each in results}


def sent(calls):
    """Return all that a scripted model was sent."""
    return "\n".join(text for each in calls for text in (each.system, *(message.text for message in each.messages)))


# --- Hosts ---------------------------------------------------------------------------------------------------------


async def drive_host(world, user, trust):
    """A `Host`: turns, tools within and outside a turn, commands."""
    who = {"session": "matrix", "user": user, "trust": trust}
    async with world.host() as host:
        async with host.turn(PROMPT, **who) as turn:
            shown = "\n".join([turn.system_prompt(), *(each.text for each in turn.references)])
            returned = {name: await _tried(host.run_tool(turn.id, name, ARGUMENTS[name])) for name in ARGUMENTS}
            await turn.commit("Done.")
        for name in ARGUMENTS:
            returned[name] += await _tried(host.use_tool(name, ARGUMENTS[name], **who))
        context = CommandContext(**who)
        offered = frozenset(tool.name for tools in host.offered_tools(context).values() for tool in tools)
        commands = {one: await _tried(host.run_command(one, two, (), context)) for one, two in COMMANDS}
        await host.drain()
    return Seen(shown=shown, offered=offered, returned=returned, commands=commands)


async def drive_sync_host(world, user, trust):
    """A `SyncHost`, without an event loop."""

    def drive():
        who = {"session": "matrix", "user": user, "trust": trust}
        with SyncHost(world.host()) as host:
            with host.turn(PROMPT, **who) as turn:
                shown = "\n".join([turn.system_prompt(), *(each.text for each in turn.references)])
                returned = {name: _tried_now(host.run_tool, turn.id, name, ARGUMENTS[name]) for name in ARGUMENTS}
                turn.commit("Done.")
            context = CommandContext(**who)
            offered = frozenset(tool.name for tools in host.offered_tools(context).values() for tool in tools)
            commands = {one: _tried_now(host.run_command, one, two, (), context) for one, two in COMMANDS}
            host.drain()
        return Seen(shown=shown, offered=offered, returned=returned, commands=commands)

    return await asyncio.to_thread(drive)


# --- The agent and its command -------------------------------------------------------------------------------------


async def drive_agent(world, user, trust):
    """The reference agent: its loop, and the slash commands of a conversation."""
    loader = EngineLoader(world.config, plugins={"watching": (watching := Watching())}, environment={"MATRIX_KEY": KEY})
    async with await loader.load() as engine:
        calls = []
        engine.provider = provider = ScriptedProvider(calls)
        prompts = {PROMPT: [Say(text="Done.")], **{f"Use {name}.": steps_of(name) for name in ARGUMENTS}}
        for prompt, steps in prompts.items():
            provider.scripts.begin(Ask(prompt=prompt, steps=steps))
            await AgentLoop(engine).run(prompt, f"matrix-{prompt}", user, trust=trust)
        offered, shown = frozenset(calls[0].tools), sent(calls[:1])
        talk = Conversation(engine=engine, session="talk", user=user, trust=Trust(trust))
        commands = {one: await _tried(talk.command(f"/memory {one} {two}")) for one, two in COMMANDS}
        await engine.host.drain()
        return Seen(shown=shown, offered=offered, returned=watching.returned(), commands=commands)


async def drive_beaver_run(world, user, trust):
    """`beaver run`, in its own process, against a model server that records its requests."""
    who = ("--user", user, "--trust", str(trust))
    async with serve(whole("Done."), *_tool_calls()) as server:
        await _beaver(world, server, "run", PROMPT, *who)
        for name in ARGUMENTS:
            await _beaver(world, server, "run", f"Use {name}.", *who)
        return Seen(shown=server.requests[0].body.decode(), offered=_tools(server), returned=_returned(server))


async def drive_beaver_chat(world, user, trust):
    """`beaver chat`, with lines piped in: prompts and slash commands."""
    slashes = [f"/memory {one} {two}" for one, two in COMMANDS]
    said = "\n".join([PROMPT, *(f"Use {name}." for name in ARGUMENTS), *slashes])
    async with serve(whole("Done."), *_tool_calls()) as server:
        out = await _beaver(world, server, "chat", "--user", user, "--trust", str(trust), stdin=said)
        return Seen(
            shown=server.requests[0].body.decode(),
            offered=_tools(server),
            returned=_returned(server),
            commands=dict.fromkeys([one for one, _ in COMMANDS], out),
        )


def _tool_calls():
    """Return the answers of a model that calls each tool once."""
    for name in ARGUMENTS:
        yield whole(None, calls=[call(name, json.dumps(ARGUMENTS[name]), call_id=name)])
        yield whole("Done.")


def _returned(server):
    """Return the results that the model got for its calls."""
    messages = [each for request in server.requests for each in request.json["messages"]]
    return {each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"}


def _tools(server):
    return frozenset(each["function"]["name"] for each in server.requests[0].json.get("tools", ()))


async def _beaver(world, server, *words, stdin=""):
    """Run `beaver` over a world, with a model; return its output."""
    world.change("provider", {**world.section("provider"), "baseUrl": server.base_url})
    return await beaver(world, *words, stdin=stdin)


async def beaver(world, *words, stdin=""):
    """Run `beaver` over a world, in its own process; return its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "beaver_hooks.cli", "--config", str(world.config), *words,
        env={**os.environ, "MATRIX_KEY": KEY, "HOME": str(world.folder), "EDITOR": "cat"}, cwd=world.folder,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate(stdin.encode())
    return f"{out.decode()}\n{errors.decode()}"


# --- Adapters ------------------------------------------------------------------------------------------------------


def drive_harness(kind):
    """Return a function that drives an agent framework, with the scripted model of its conformance harness."""

    async def drive(world, user, trust):
        harness = kind()
        harness.defaults = {"trust": trust}
        await harness.open_over(world.host(plugins={"watching": (watching := Watching())}))
        try:
            await _run(harness, PROMPT, [Say(text="Done.")], user)
            offered, shown = frozenset(harness.calls[0].tools) & {*ARGUMENTS}, sent(harness.calls[:1])
            for name in ARGUMENTS:
                await _run(harness, f"Use {name}.", steps_of(name), user)
            await harness.settle()
            return Seen(shown=shown, offered=offered, returned=watching.returned())
        finally:
            await harness.close()

    return drive


async def _run(harness, prompt, steps, user):
    # A framework may raise when a model calls a tool that it does not offer: that is a refusal too.
    try:
        await harness.run(Ask(prompt=prompt, steps=steps, session=f"matrix-{len(prompt)}", user=user))
    except Exception:
        return


@asynccontextmanager
async def _claude_code(host, **said):
    turns = ClaudeCodeTurns(host=host, **said)
    yield turns.handle
    await turns.settle()


@asynccontextmanager
async def _claude_agent_sdk(host, **said):
    async with claude_agent_memory(host, **said) as memory:

        async def handle(event):
            (matcher,) = memory.hooks.get(event["hook_event_name"], [None])
            return {} if matcher is None else await matcher.hooks[0](event, None, None)

        yield handle


def events_of_a_turn():
    """Yield the events of Claude Code for the first prompt of a session."""
    common = {"session_id": "matrix", "transcript_path": "/t.jsonl", "cwd": "/", "permission_mode": "default"}
    yield {**common, "hook_event_name": "SessionStart", "source": "startup"}
    yield {**common, "hook_event_name": "UserPromptSubmit", "prompt": PROMPT, "prompt_id": "p1"}
    yield {**common, "hook_event_name": "Stop", "last_assistant_message": "Done.", "prompt_id": "p1"}


def drive_events(entered):
    """Return a function that drives an agent by the events of Claude Code."""

    async def drive(world, user, trust):
        async with world.host() as host:
            async with entered(host, trust=trust, user=user) as handle:
                shown = [json.dumps(await handle(event)) for event in events_of_a_turn()]
            await host.drain()
        return Seen(shown="\n".join(shown))

    return drive


async def trust_unless_told(entrance, host, watching):
    """Return the trust of a turn at an adapter whose user sets no trust."""
    if entrance in EVENTS:
        async with host, EVENTS[entrance](host) as handle:
            for event in events_of_a_turn():
                await handle(event)
    elif entrance in HARNESSES:
        harness = HARNESSES[entrance]()
        await harness.open_over(host)
        await harness.run(Ask(prompt=PROMPT, steps=[Say(text="Done.")]))
        await harness.close()
    else:
        return Identity().trust
    return watching.calls_of("before_prompt")[0].arguments["turn"].trust


async def drive_mcp(world, user, trust):
    """A client of the MCP server: it uses all that is listed, and asks for the rest too."""
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(world.host())
        server = MemoryServer(host, Identity(user=user, trust=trust))
        client = await stack.enter_async_context(Client(server.server, cache=None))
        offered = frozenset(each.name for each in (await client.list_tools()).tools)
        returned = {name: await _tool(client, name) for name in ARGUMENTS}
        commands = {one: await _prompt(client, f"memory_{one}_{two}") for one, two in COMMANDS}
        for each in (await client.list_resources()).resources:
            returned["memory_search"] += str(await client.read_resource(str(each.uri)))
        return Seen(offered=offered, returned=returned, commands=commands)


async def _tool(client, name):
    try:
        return str(await client.call_tool(name, ARGUMENTS[name]))
    except MCPError:
        return ""


async def _prompt(client, name):
    try:
        return str(await client.get_prompt(name, {}))
    except MCPError:
        return ""


async def _tried(work):
    try:
        return str(await work)
    except BeaverError:
        return ""


def _tried_now(function, *arguments):
    try:
        return str(function(*arguments))
    except BeaverError:
        return ""


HARNESSES = {
    "agent_framework": AgentFrameworkHarness,
    "before_after": PlainHarness,
    "google_adk": GoogleAdkHarness,
    "langchain": LangchainHarness,
    "openai_agents": OpenaiAgentsHarness,
    "pydantic_ai": PydanticAIHarness,
    "strands": StrandsHarness,
}
EVENTS = {"claude_agent_sdk": _claude_agent_sdk, "claude_code": _claude_code}
ADAPTERS = {
    **{name: drive_harness(kind) for name, kind in HARNESSES.items()},
    **{name: drive_events(entered) for name, entered in EVENTS.items()},
    "mcp_server": drive_mcp,
}
"""What drives each adapter, by the name of its module."""

ENTRANCES = {
    "Host": drive_host,
    "SyncHost": drive_sync_host,
    "AgentLoop": drive_agent,
    "beaver run": drive_beaver_run,
    "beaver chat": drive_beaver_chat,
    **ADAPTERS,
}
