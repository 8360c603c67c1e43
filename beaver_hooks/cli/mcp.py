"""`beaver mcp`: the plugins' tools, commands and health for clients of the Model Context Protocol."""

import asyncio
import logging
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

import beaver_hooks
from beaver_hooks.cli.common import IDENTIFIER, common, configured, in_loop
from beaver_hooks.cli.streams import tell
from beaver_hooks.cli.terminal import harmless
from beaver_hooks.config import LoadedConfig
from beaver_hostspecs import HostMisused, PluginMissing, Trust, scrub
from beaver_hostspecs.distributions import install_command

if TYPE_CHECKING:
    from beaver_hooks.adapters.mcp_server import HttpPlace, Identity
    from beaver_hooks.host import Host

ADAPTER = "beaver_hooks.adapters.mcp_server"
NEEDED = ("mcp", "mcp_types", "starlette", "uvicorn")
"""The packages of the extra; `mcp_types` exists from version 2 of `mcp` on."""

MISSING = "`beaver mcp` needs the package `mcp`, version 2; run: {}"
ELSEWHERE = ("mcp", "uvicorn")
"""Loggers of other packages that log while a server runs."""


@click.command(name="mcp")
@click.option("--http", is_flag=True, help="Listen on a port instead of serving stdin and stdout.")
@click.option("--host", metavar="ADDRESS", help="The address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on; 0 for any free one.  [default: 8737]"
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Allow requests from other machines, which call this one HOST.",
)
@click.option("--user", metavar="ID", type=IDENTIFIER, help="The id of the user whose memory is used.")
@click.option(
    "--session", metavar="ID", type=IDENTIFIER, help="The session of all calls; by default each connection has its own."
)
@click.option(
    "--trust",
    type=click.Choice([each.value for each in Trust]),
    help="How far memory trusts a client that connects.  [default: full; public with --http]",
)
@common
def command(
    *, http: bool, user: str | None, session: str | None, trust: str | None, config: Path | None, **where: Any
) -> None:
    """Serve memory to clients of the Model Context Protocol.

    A client gets the plugins' tools, their commands as prompts, and their health as a resource. It sends neither the
    user's prompts nor the model's answers, so nothing is recalled or kept automatically.

    With --http every request needs a token: the value of BEAVER_MCP_TOKEN, or else the one that the first start writes
    into the state folder.
    """
    given = {name: value for name, value in where.items() if value not in (None, ())}
    if given and not http:
        raise click.UsageError("--host, --port and --name need --http; add it, or leave them out.")
    _check_extra()
    from beaver_hooks.adapters.mcp_server import Identity  # noqa: PLC0415 - an extra

    identity = Identity(user=user, session=session, trust=Trust(trust or (Trust.PUBLIC if http else Trust.FULL)))
    place = _place(given) if http else None
    loaded = configured(config)
    _set_up_other_logs()
    in_loop(_stdio(loaded, identity) if place is None else _http(loaded, identity, place))


def _place(given: dict[str, Any]) -> "HttpPlace":
    from beaver_hooks.adapters.mcp_server import HttpPlace  # noqa: PLC0415 - an extra

    try:
        return HttpPlace(**given)
    except HostMisused as error:
        raise click.UsageError(f"{error}: --name HOST.") from None


async def _stdio(loaded: LoadedConfig, identity: "Identity") -> None:
    from beaver_hooks.adapters.mcp_server import RecordedAnswers, wire  # noqa: PLC0415 - an extra

    record = RecordedAnswers.of(loaded, identity, os.environ)
    # Before the plugins are loaded: their output is not for the client.
    async with wire(record) as streams:
        server = await asyncio.to_thread(_server)
        async with _host(loaded) as host:
            record.retire(type(host.plugin(name)).__module__.partition(".")[0] for name in host.plugins)
            await server.serve_stdio(server.MemoryServer(host, identity), streams)


def _server() -> ModuleType:
    """Import the SDK and the host, which takes a second: in a thread, so that signals end it."""
    return import_module(f"{ADAPTER}.server")


async def _http(loaded: LoadedConfig, identity: "Identity", place: "HttpPlace") -> None:
    from beaver_hooks.adapters.mcp_server import MemoryServer, find_token, serve_http  # noqa: PLC0415 - an extra

    token = find_token(loaded.state_folder, os.environ)

    def ready(url: str) -> None:
        tell(harmless(f"Listening at {url}; the token is {token.source}."))

    async with _host(loaded) as host:
        await serve_http(MemoryServer(host, identity), token.secret, place, ready)


def _host(loaded: LoadedConfig) -> "Host":
    from beaver_hooks.host import Host  # noqa: PLC0415 - importing it takes a while

    return Host(
        entry_points=None,
        config=loaded.config,
        state_folder=loaded.state_folder,
        person_folder=loaded.person_folder,
    )


def _check_extra() -> None:
    """Raise if a package of the extra is missing, without importing it.

    Raises:
        PluginMissing: a package is missing.
    """
    if any(find_spec(each) is None for each in NEEDED):
        raise PluginMissing(MISSING.format(install_command("beaver-hooks", "mcp")))


class _OneLine(logging.Filter):
    """Makes each record of another package one line, without a secret and without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; let every record through."""
        kind = record.exc_info[0] if record.exc_info else None
        said = f"{record.name}: {record.getMessage()}{f' ({kind.__name__})' if kind else ''}"
        record.msg, record.args = harmless(" ".join(scrub(said).split())), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def _set_up_other_logs() -> None:
    """Send warnings and errors of other packages to our own log; their lower levels contain content."""
    ours = logging.getLogger(beaver_hooks.__name__)
    for name in ELSEWHERE:
        logger = logging.getLogger(name)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        handler.addFilter(_OneLine())
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(max(ours.level, logging.WARNING))
