"""Serves the plugins over the Model Context Protocol, for hosts that only pull.

`MemoryServer` answers a client: the plugins' tools, their commands as prompts, their health as a resource, their rules
as the server's instructions. `serve_stdio` and `serve_http` connect it. Such a host shows neither the user's prompts
nor the answers, so plugins recall and learn nothing by themselves: only the tools and commands run.

`identity` names the user, `tools` lists and runs the tools, `server` adds prompts and resources and serves stdio.
`standard_streams` is that transport, `token` and `http` are the other. `recorded_answers` and
`early_answers` answer the first requests over stdio while the SDK is imported and the host is opened.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaver_hooks.adapters.mcp_server.early_answers import EarlyAnswers
    from beaver_hooks.adapters.mcp_server.http import HttpPlace, serve_http
    from beaver_hooks.adapters.mcp_server.identity import Identity
    from beaver_hooks.adapters.mcp_server.recorded_answers import RecordedAnswers
    from beaver_hooks.adapters.mcp_server.server import MemoryServer, serve_stdio
    from beaver_hooks.adapters.mcp_server.standard_streams import Wire, wire
    from beaver_hooks.adapters.mcp_server.token import Token, find_token

__all__ = [
    "EarlyAnswers",
    "HttpPlace",
    "Identity",
    "MemoryServer",
    "RecordedAnswers",
    "Token",
    "Wire",
    "find_token",
    "serve_http",
    "serve_stdio",
    "wire",
]

_MODULES = {
    "EarlyAnswers": "early_answers",
    "HttpPlace": "http",
    "Identity": "identity",
    "MemoryServer": "server",
    "RecordedAnswers": "recorded_answers",
    "Token": "token",
    "Wire": "standard_streams",
    "find_token": "token",
    "serve_http": "http",
    "serve_stdio": "server",
    "wire": "standard_streams",
}
"""The module of each name. It is imported on first use: importing the SDK takes half a second."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
