"""Connections to a host: its name is looked up in a thread of ours, and its addresses are tried one after another.

1. A lookup cannot be ended. So it has a thread that nobody else needs, and nobody waits for it at the end.
2. There is one lookup of a name at a time, and whoever needs it waits for that one, within their own deadline.
3. An address needs no lookup.
4. The next address is tried when the one before has failed, or has taken its time; the first that answers is used.
   TLS is checked against the name all the same.
"""

import asyncio
import ipaddress
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import httpcore

from beaver_toolkit.workers import Workers

PAUSE = 0.25
"""Seconds after which the next address is tried, too."""

Connecting = asyncio.Future[httpcore.AsyncNetworkStream]
Connect = Callable[[str], Awaitable[httpcore.AsyncNetworkStream]]


class Resolver:
    """Looks up names. For one event loop."""

    def __init__(self) -> None:
        self._worker = Workers("beaver-gateway-names", threads=1, idle_seconds=0)
        self._lookups: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, at least one.

        Raises:
            socket.gaierror: it has none.
        """
        if _is_address(host):
            return [host]
        if host not in self._lookups:
            lookup = self._lookups[host] = self._worker.run(partial(look_up, host, port))
            lookup.add_done_callback(lambda _: self._lookups.pop(host))
        found = await asyncio.shield(self._lookups[host])
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        return found


class Backend(httpcore.AnyIOBackend):
    """Connects as the HTTP library does, but for the lookup."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of a host that answers."""
        connect = super().connect_tcp

        async def one(address: str) -> httpcore.AsyncNetworkStream:
            return await connect(address, port, timeout, local_address, socket_options)

        try:
            addresses = await self._resolver.addresses(host, port)
        except socket.gaierror as error:
            raise httpcore.ConnectError("the name cannot be resolved") from error
        return await first(addresses, one)


async def first(addresses: Sequence[str], connect: Connect) -> httpcore.AsyncNetworkStream:
    """Return the connection to the first address that answers, and close all others. Rule 4.

    Raises:
        httpcore.ConnectError: none does.
    """
    if len(addresses) == 1:
        return await connect(addresses[0])
    waiting, tasks, chosen = deque(addresses), list[Connecting](), None
    try:
        while waiting or not all(task.done() for task in tasks):
            if waiting:
                tasks.append(asyncio.ensure_future(connect(waiting.popleft())))
            running = [task for task in tasks if not task.done()]
            done, _ = await asyncio.wait(
                running, timeout=PAUSE if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            if (chosen := next((task for task in done if task.exception() is None), None)) is not None:
                return chosen.result()
        return tasks[-1].result()
    finally:
        await _end([task for task in tasks if task is not chosen])


async def _end(tasks: Sequence[Connecting]) -> None:
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(ended, BaseException):
            await ended.aclose()


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses that the system knows of a host, each once; none where it knows none. It may block."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [*dict.fromkeys(str(address[0]) for *_, address in found)]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
