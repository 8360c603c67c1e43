"""Serves the plugins over the Model Context Protocol, for hosts that only pull.

`MemoryServer` answers a client: the plugins' tools, their commands as prompts, their health as a resource, their rules
as the server's instructions. `serve_stdio` and `serve_http` connect it. Such a host shows neither what the user says
nor the answer, so nothing is recalled or learned by itself: only the tools and commands run.

`identity` says for whom, `tools`, `prompts` and `resources` are the three things on offer, `server` puts them together,
`standard_streams` and `stdio` are the one way in, `token`, `gate` and `http` the other.
"""

from beaver_hooks.adapters.mcp_server.http import HttpPlace, serve_http
from beaver_hooks.adapters.mcp_server.identity import Identity
from beaver_hooks.adapters.mcp_server.server import MemoryServer
from beaver_hooks.adapters.mcp_server.stdio import Wire, serve_stdio, wire
from beaver_hooks.adapters.mcp_server.token import Token, find_token

__all__ = [
    "HttpPlace",
    "Identity",
    "MemoryServer",
    "Token",
    "Wire",
    "find_token",
    "serve_http",
    "serve_stdio",
    "wire",
]
