"""Serves one client over standard input and output."""

import contextlib
from typing import Any, cast

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from beaver_hooks.adapters.mcp_server.server import MemoryServer
from beaver_hooks.adapters.mcp_server.standard_streams import Wire, wire


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
