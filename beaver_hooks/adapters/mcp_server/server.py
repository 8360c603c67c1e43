"""Answers the protocol's requests of one or many clients from an open host."""

import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar, cast

import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from beaver_hooks import __version__
from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.standard_streams import Wire, wire
from beaver_hooks.adapters.mcp_server.texts import clean, clean_all
from beaver_hooks.adapters.mcp_server.tools import Tools
from beaver_hooks.config.paths import did_you_mean
from beaver_hooks.host import Host
from beaver_hooks.receipts.health import Health
from beaver_hooks.receipts.recorder import HOST
from beaver_hooks.tools.box import NAME as TOOL_NAME
from beaver_hooks.tools.outcomes import describe_error, one_line
from beaver_hostspecs import BeaverError, Command, Reference, Trust
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.rendering import render_references

NAME = "beaver"
SESSION_HEADER = "mcp-session-id"
Context: TypeAlias = "ServerRequestContext[str]"
T = TypeVar("T")

JSON_URI = "beaver://health"
TEXT_URI = "beaver://health/text"
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"

WORDS = "words"
"""The one argument of every prompt."""

LONGEST = 10_000
"""The most characters of words that a command takes."""


class MemoryServer:
    """The offers of an open host, for clients of the Model Context Protocol.

    Args:
        host: a host that is open, and stays so while there are connections.
        identity: the user of the server; by default unnamed and with public trust.
    """

    def __init__(self, host: Host, identity: Identity | None = None) -> None:
        self._host = host
        self._identity = Identity() if identity is None else identity
        self._tools = Tools(host, self._identity)
        self._prompts = Prompts(host, self._identity)
        self._resources = Resources(host, self._identity)
        self._server: Server[str] = Server(
            NAME,
            version=__version__,
            lifespan=_connection,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    @property
    def server(self) -> Server[str]:
        """The SDK's server, for one more connection: its instructions are the rules of the plugins as of now.

        They are empty while memory is off, and leave out a plugin that has tools but offers the client none of them.
        """
        caller = self._identity.context(self._identity.session)
        off = self._host.is_memory_off(session=caller.session, user=caller.user)
        offered, tools = self._host.offered_tools(caller), self._host.tools
        there = [info for name, info in self._host.plugins.items() if not off and (offered[name] or not tools[name])]
        rules = [rule for info in there for rule in info.rules]
        self._server.instructions = clean("\n\n".join(rules)) or None
        return self._server

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return await self._guarded(self._now(self._tools.listed, self._session(context)))

    async def _call_tool(self, context: Context, wanted: types.CallToolRequestParams) -> types.CallToolResult:
        return await self._guarded(self._tools.call(wanted.name, wanted.arguments, self._session(context)))

    async def _list_prompts(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return await self._guarded(self._now(self._prompts.listed, self._session(context)))

    async def _get_prompt(self, context: Context, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
        words = (wanted.arguments or {}).get(WORDS, "")
        return await self._guarded(self._prompts.get(wanted.name, words, self._session(context)))

    async def _list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return await self._guarded(self._now(self._resources.listed))

    async def _read_resource(self, _: Context, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await self._guarded(self._now(self._resources.read, str(wanted.uri)))

    @staticmethod
    async def _now(function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)

    async def _guarded(self, work: Awaitable[T]) -> T:
        """Return the result of `work`; the text of an unexpected error does not reach the client."""
        try:
            return await work
        except MCPError:
            raise
        except BeaverError as error:
            raise MCPError(types.INTERNAL_ERROR, clean(describe_error(error))) from None
        except Exception as error:  # noqa: BLE001 - the host records it
            self._host.record("mcp_request_failed", loudly=True, error=type_name(error))
            raise MCPError(types.INTERNAL_ERROR, f"the request failed ({type_name(error)})") from None

    def _session(self, context: Context) -> str:
        """Return the session of a call: the configured one, else one per connection.

        Over HTTP, the protocol identifies a connection by an id; all calls without one share a session.
        """
        if self._identity.session is not None:
            return self._identity.session
        header = None if context.request is None else context.request.headers.get(SESSION_HEADER)
        # In the versions without a handshake the SDK does not check the header.
        if header and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            return f"mcp-{header}"
        return context.lifespan_context


@asynccontextmanager
async def _connection(_: object) -> AsyncIterator[str]:
    """Yield a session id: one for each stream, and one for all of HTTP."""
    yield f"mcp-{secrets.token_hex(12)}"


class Resources:
    """Lists and reads the two resources: health as JSON, and as lines for people."""

    def __init__(self, host: Host, identity: Identity) -> None:
        self._host = host
        self._identity = identity

    def listed(self) -> types.ListResourcesResult:
        """Return both."""
        about = "The health of each memory plugin: its state, since when, and why."
        resources = [
            types.Resource(name="health", uri=JSON_URI, mime_type=JSON_TYPE, description=about),
            types.Resource(name="health-text", uri=TEXT_URI, mime_type=TEXT_TYPE, description=about),
        ]
        return types.ListResourcesResult(resources=resources, ttl_ms=0, cache_scope="private")

    def read(self, uri: str) -> types.ReadResourceResult:
        """Return one of them.

        Raises:
            MCPError: there is no such resource.
        """
        if uri not in (JSON_URI, TEXT_URI):
            raise MCPError(
                types.INVALID_PARAMS, f"there is no such resource; the resources are: {JSON_URI}, {TEXT_URI}"
            )
        health = self._host.health()
        if self._identity.trust is not Trust.FULL:
            health = {name: Health(state=each.state, since=each.since) for name, each in health.items()}
        text, kind = (as_json(health), JSON_TYPE) if uri == JSON_URI else (as_lines(health), TEXT_TYPE)
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")


def as_json(health: Mapping[str, Health]) -> str:
    """Return the health of every plugin, and the host's own, as one JSON object."""
    plugins = {name: _plain(each) for name, each in health.items() if name != HOST}
    known: dict[str, object] = {"plugins": plugins}
    if HOST in health:
        known["host"] = _plain(health[HOST])
    return json.dumps(clean_all(known), ensure_ascii=False)


def _plain(health: Health) -> dict[str, object]:
    since = None if health.since is None else health.since.isoformat()
    return {"state": health.state, "since": since, "sources": dict(health.faults), "reason": health.reason}


def as_lines(health: Mapping[str, Health]) -> str:
    """Return the health of every plugin, one line each."""
    return "\n".join(clean(f"{name}: {each}") for name, each in health.items()) or "no plugin is installed"


class Prompts:
    """Lists the commands as prompts `memory_PLUGIN_COMMAND`; getting one runs the command.

    A command whose name makes an invalid or taken prompt name is left out, with one loud log entry.
    """

    def __init__(self, host: Host, identity: Identity) -> None:
        self._host = host
        self._identity = identity
        self._refused: set[tuple[str, str, str]] = set()

    def listed(self, session: str) -> types.ListPromptsResult:
        """Return every command that the client may use now."""
        prompts = [
            types.Prompt(name=name, description=clean(f"{plugin}: {command.summary}"), arguments=[_words()])
            for name, (plugin, command) in self._offered(session).items()
        ]
        return types.ListPromptsResult(prompts=prompts, ttl_ms=0, cache_scope="private")

    async def get(self, name: str, words: str, session: str) -> types.GetPromptResult:
        """Run a command; return its text as a fenced user message: a memory may show texts of strangers.

        Raises:
            MCPError: this client has no such prompt, the words are too long, or the command failed.
        """
        offered = self._offered(session)
        if name not in offered:
            known = one_line(", ".join(offered)) or "none"
            meant = did_you_mean(name, offered)
            raise MCPError(types.INVALID_PARAMS, f"there is no such prompt{meant}; the prompts are: {known}")
        if len(words) > LONGEST:
            raise MCPError(types.INVALID_PARAMS, f"`{WORDS}` has at most {LONGEST} characters")
        plugin, command = offered[name]
        try:
            said = await self._host.run_command(plugin, command.name, words.split(), self._identity.context(session))
        except Exception as error:  # noqa: BLE001 - the host has recorded it
            raise MCPError(types.INTERNAL_ERROR, clean(describe_error(error))) from None
        return _message(plugin, command, said)

    def _offered(self, session: str) -> dict[str, tuple[str, Command]]:
        offered: dict[str, tuple[str, Command]] = {}
        refused: set[tuple[str, str, str]] = set()
        for plugin, commands in self._host.offered_commands(self._identity.context(session)).items():
            for command in commands:
                name = f"memory_{plugin}_{command.name}"
                if TOOL_NAME.fullmatch(command.name) is None:
                    refused.add((plugin, command.name, "unusable_name"))
                elif name in offered:
                    refused.add((plugin, command.name, "name_taken"))
                else:
                    offered[name] = (plugin, command)
        for plugin, command_name, why in sorted(refused - self._refused):
            self._host.record("prompt_refused", plugin=plugin, loudly=True, command=command_name, why=why)
        self._refused = refused
        return offered


def _words() -> types.PromptArgument:
    return types.PromptArgument(
        name=WORDS, description="The arguments of the command, separated by spaces.", required=False
    )


def _message(plugin: str, command: Command, said: str) -> types.GetPromptResult:
    item = Reference(kind="command", id=command.name, text=clean(said))
    rendered = render_references(plugin, [item], boundary=secrets.token_hex(8))
    text = (
        f"The command `{command.name}` of the plugin `{plugin}` printed nothing." if rendered is None else rendered.text
    )
    content = types.TextContent(type="text", text=clean(text))
    return types.GetPromptResult(
        description=clean(command.summary), messages=[types.PromptMessage(role="user", content=content)]
    )


async def serve_stdio(memory: MemoryServer, over: Wire | None = None) -> None:
    """Serve the client at the other end of standard input and output, until it closes its end.

    Args:
        memory: answers the requests.
        over: the result of `wire` if it was entered already, or the wire of `EarlyAnswers`.
    """
    async with contextlib.AsyncExitStack() as stack:
        this = await stack.enter_async_context(wire()) if over is None else over
        # The SDK iterates over the first, and writes to and flushes the second.
        streams = stdio_server(cast("Any", this.lines), cast("Any", this.out))
        read, write = await stack.enter_async_context(streams)
        server = memory.server
        # The list of tools may differ from the early answer.
        options = server.create_initialization_options(NotificationOptions(tools_changed=True))
        await server.run(read, write, options)
