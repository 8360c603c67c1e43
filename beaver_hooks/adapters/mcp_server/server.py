"""Answers the protocol's requests of one or many clients from an open host."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from beaver_hooks import __version__
from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.prompts import WORDS, Prompts
from beaver_hooks.adapters.mcp_server.resources import Resources
from beaver_hooks.adapters.mcp_server.texts import clean
from beaver_hooks.adapters.mcp_server.tools import Tools
from beaver_hooks.host import Host
from beaver_hooks.tools.result_text import describe_error
from beaver_hostspecs import BeaverError
from beaver_hostspecs.naming import type_name

NAME = "beaver"
SESSION_HEADER = "mcp-session-id"
Context: TypeAlias = "ServerRequestContext[str]"
T = TypeVar("T")


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
