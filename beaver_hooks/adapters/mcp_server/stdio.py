"""Serves one client over standard input and output."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import attrs
from mcp.server.stdio import stdio_server

from beaver_hooks.adapters.mcp_server.server import MemoryServer
from beaver_hooks.adapters.mcp_server.standard_streams import LinesIn, TextOut, lent


@attrs.frozen
class Wire:
    """The two directions of a connection over standard input and output."""

    lines: LinesIn
    out: TextOut


@contextlib.asynccontextmanager
async def wire() -> AsyncIterator[Wire]:
    """Keep standard input and output for the protocol. Enter it before the host is opened: plugins may print."""
    with lent() as (read, write):
        lines = LinesIn(read)
        yield Wire(lines, TextOut(write, lines.end))


async def serve_stdio(memory: MemoryServer, over: Wire | None = None) -> None:
    """Serve the client at the other end of standard input and output, until it closes its end.

    Args:
        memory: what answers.
        over: what `wire` gives, where it was entered already.
    """
    async with contextlib.AsyncExitStack() as stack:
        this = await stack.enter_async_context(wire()) if over is None else over
        # The SDK iterates over the one, and writes to and flushes the other.
        streams = stdio_server(cast("Any", this.lines), cast("Any", this.out))
        read, write = await stack.enter_async_context(streams)
        server = memory.server
        await server.run(read, write, server.create_initialization_options())
