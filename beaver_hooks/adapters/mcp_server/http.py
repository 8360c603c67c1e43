"""Serves clients over streamable HTTP."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Callable, Iterator

import attrs
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from beaver_hooks.adapters.mcp_server.server import MemoryServer
from beaver_hooks.adapters.mcp_server.token import App, Gate
from beaver_hostspecs import HostMisused, Secret

PATH = "/mcp"
PORT = 8737
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
IDLE = 24 * 60 * 60.0
"""Seconds after which a session without requests ends: clients leave without a message."""

GRACE = 1
"""Seconds for pending answers when the server ends."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@attrs.frozen(kw_only=True)
class HttpPlace:
    """The address where a server listens, and its names.

    Attributes:
        host: the address; any but a loopback one needs `names`.
        port: the port; 0 for a free one.
        names: the names by which other machines call it, as in `Host` headers, with or without a port. Without names,
            other machines have no access.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not is_loopback(self.host) and not self.names:
            raise HostMisused(
                f"`{self.host}` is open to other machines; use 127.0.0.1, or give the names by which they call this"
                " machine"
            )

    def bound(self) -> socket.socket:
        """Return a socket that listens here.

        Raises:
            HostMisused: the address is unusable.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            why = (
                os.strerror(error.errno)
                if error.errno is not None and error.errno > 0
                else error.strerror or type(error).__name__
            )
            raise HostMisused(
                f"port {self.port} of `{self.host}` cannot be listened on ({why}); use another one"
            ) from None

    def allowed(self, port: int) -> TransportSecuritySettings:
        """Return the allowed `Host` and `Origin` headers: a page in a browser is a stranger."""
        names = [*_with_ports((*LOOPBACK, *self.names), port)]
        origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins
        )


def make_app(memory: MemoryServer, token: Secret, allowed: TransportSecuritySettings, *, idle: float = IDLE) -> App:
    """Return the ASGI application: the protocol at `PATH`, behind the token."""
    server = memory.server
    app: App = server.streamable_http_app(streamable_http_path=PATH, transport_security=allowed)
    server.session_manager.session_idle_timeout = idle
    return Gate(app=app, token=token, entering=lambda: memory.server)


async def serve_http(
    memory: MemoryServer, token: Secret, place: HttpPlace, ready: Callable[[str], object] | None = None
) -> None:
    """Serve until this is cancelled, or SIGINT or SIGTERM arrives; pending answers have a second to end.

    Args:
        memory: answers the requests.
        token: the token that every request must have.
        place: where to listen.
        ready: called with the URL once the server accepts requests.

    Raises:
        HostMisused: the server cannot listen on the port.
    """
    with place.bound() as listening:
        port: int = listening.getsockname()[1]
        app = make_app(memory, token, place.allowed(port))
        config = uvicorn.Config(
            app, lifespan="on", log_config=None, access_log=False, server_header=False,
            timeout_graceful_shutdown=GRACE, proxy_headers=False, ws="none",
        )  # fmt: skip
        if ready is not None:
            ready(f"http://{_in_url(place.host)}:{port}{PATH}")
        await _until_told(uvicorn.Server(config), listening)


async def _until_told(server: uvicorn.Server, listening: socket.socket) -> None:
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await asyncio.wait({serving})
        raise


def _with_ports(names: tuple[str, ...], port: int) -> Iterator[str]:
    for name in names:
        yield name
        yield f"{name}:{port}"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
