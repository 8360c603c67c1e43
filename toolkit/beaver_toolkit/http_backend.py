"""Makes the connections of `beaver_toolkit.http`: names by `beaver_toolkit.dns`, addresses one after another.

The next address is tried when the one before has failed or has taken its time; the first that answers is used. TLS is
checked against the name all the same.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

from beaver_toolkit.dns import Resolver
from beaver_toolkit.workers import Overloaded

PAUSE = 0.25
"""Seconds after which the next address is tried, too."""

Attempt = asyncio.Future[httpcore.AsyncNetworkStream]
Connect = Callable[[str], Awaitable[httpcore.AsyncNetworkStream]]


class Backend(httpcore.AnyIOBackend):
    """Connects as httpcore does, except for the lookup and the order of addresses."""

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

        async def attempt(address: str) -> httpcore.AsyncNetworkStream:
            return await connect(address, port, timeout, local_address, socket_options)

        try:
            addresses = await self._resolver.addresses(host, port)
        except (socket.gaierror, Overloaded) as error:
            raise httpcore.ConnectError("the name cannot be resolved") from error
        return await connect_first(addresses, attempt)


async def connect_first(addresses: Sequence[str], connect: Connect) -> httpcore.AsyncNetworkStream:
    """Return the connection to the first address that answers, and close all others.

    Raises:
        httpcore.ConnectError: no address answers; the error is that of the last one.
    """
    if len(addresses) == 1:
        return await connect(addresses[0])
    waiting, attempts, chosen = deque(addresses), list[Attempt](), None
    try:
        while waiting or not all(attempt.done() for attempt in attempts):
            if waiting:
                attempts.append(asyncio.ensure_future(connect(waiting.popleft())))
            running = [attempt for attempt in attempts if not attempt.done()]
            done, _ = await asyncio.wait(
                running, timeout=PAUSE if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            if (chosen := next((attempt for attempt in done if attempt.exception() is None), None)) is not None:
                return chosen.result()
        return attempts[-1].result()
    finally:
        await _end([attempt for attempt in attempts if attempt is not chosen])


async def _end(attempts: Sequence[Attempt]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for ended in await asyncio.gather(*attempts, return_exceptions=True):
        if not isinstance(ended, BaseException):
            await ended.aclose()
