"""HTTP requests within bounds: one deadline, a limit of bytes, one address. Over httpx; needs the extra `http`.

1. One deadline for each exchange: waiting for a place, looking up the name, connecting, and every byte of the answer,
   however slowly it drips.
2. No more bytes than allowed, counted as they come from the network. A compressed answer is refused.
3. No redirects, no cookies, no retries, and no proxies, credentials or certificates from the environment.
4. A failure is a category in the `Reply` and not an error: the errors of httpx hold the request, and the credential in
   it.
5. httpx logs the address of each request. Only the requests of this module are left out of that log.

`beaver_toolkit.http_sync` does the same for callers without an event loop.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import Any, Literal, NamedTuple, cast

import httpcore
import httpx

from beaver_toolkit.dns import Resolver
from beaver_toolkit.workers import Overloaded

CONNECTIONS = 100
IDLE_CONNECTIONS = 10
"""Idle connections that are kept: the pool looks at each of them for every request."""

IDLE_SECONDS = 5.0

Failure = Literal[
    "timeout", "connect_timeout", "dns", "tls", "connection", "truncated", "encoded", "too_large"
]  # fmt: skip

_quiet = ContextVar("_quiet", default=False)
logging.getLogger("httpx").addFilter(lambda _: not _quiet.get())

PAUSE = 0.25
"""Seconds after which the next address is tried, too."""

Attempt = asyncio.Future[httpcore.AsyncNetworkStream]
Connect = Callable[[str], Awaitable[httpcore.AsyncNetworkStream]]


class Reply(NamedTuple):
    """How an exchange ended.

    Attributes:
        status: the HTTP status, where an answer came in time.
        body: the whole body of a 2xx answer. Of another answer no byte of the body is read.
        retry_after: the header of that name.
        failure: why there is no such answer, or no body: `timeout`, `connect_timeout` (a limit of the client's own),
            `dns`, `tls`, `connection` (not made, or lost before the answer), `truncated` (lost in the middle of it),
            `encoded` or `too_large`.
    """

    status: int | None = None
    body: bytes = b""
    retry_after: str | None = None
    failure: Failure | None = None

    @property
    def is_success(self) -> bool:
        """Whether the status is a 2xx."""
        return self.status is not None and httpx.codes.is_success(self.status)


class NoCookies(httpx.Cookies):
    """Cookies that are neither kept nor sent."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep nothing."""


NO_COOKIES = NoCookies()


class BoundedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool whose name lookups hang no other call; see `beaver_toolkit.dns`.

    httpx has no parameter for that, so its pool is replaced here, and nowhere else.

    Args:
        context: the trusted certificates, see `tls_context`.
        resolver: looks up names; transports of one event loop may share it.
        proxy: the address of a proxy.
        idle: how many idle connections are kept for the next request.
    """

    def __init__(
        self,
        *,
        context: ssl.SSLContext,
        resolver: Resolver | None = None,
        proxy: str | None = None,
        idle: int = IDLE_CONNECTIONS,
    ) -> None:
        super().__init__(verify=context, trust_env=False)
        options: dict[str, Any] = {
            "ssl_context": context,
            "max_connections": CONNECTIONS,
            "max_keepalive_connections": idle,
            "keepalive_expiry": IDLE_SECONDS,
            "network_backend": Backend(resolver or Resolver()),
        }
        self._pool = (
            httpcore.AsyncConnectionPool(**options)
            if proxy is None
            else httpcore.AsyncHTTPProxy(proxy_url=proxy, **options)
        )


class PlainClient(httpx.AsyncClient):
    """A client that keeps rule 3. It has no timeouts of its own: those start again with every byte."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        super().__init__(transport=transport, trust_env=False, timeout=None)

    @property  # type: ignore[misc] # it cannot be set
    def cookies(self) -> httpx.Cookies:
        """Always none."""
        return NO_COOKIES


class BoundedClient:
    """Posts through an `httpx.AsyncClient`, and keeps rules 1, 2, 4 and 5 with any client.

    Args:
        client: the client, closed with this object.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        # Waiting here costs nothing; the pool's own queue is walked at every step of every request.
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def post(
        self,
        url: httpx.URL,
        content: bytes | AsyncIterable[bytes],
        *,
        headers: Mapping[str, str],
        seconds: float,
        most_bytes: int,
    ) -> Reply:
        """Post `content` once; return how that ended."""
        try:
            with quiet():
                async with asyncio.timeout(seconds), self._places:
                    return await self._exchange(url, content, headers, most_bytes)
        except TimeoutError:
            return Reply(failure="timeout")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _exchange(
        self, url: httpx.URL, content: bytes | AsyncIterable[bytes], headers: Mapping[str, str], most_bytes: int
    ) -> Reply:
        request = httpx.Request("POST", url, content=content, headers=headers)
        response: httpx.Response | None = None
        try:
            response = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
            return unread_reply(response) or await _read(response, most_bytes)
        except httpx.HTTPError as error:
            failure = failure_of(error)
        finally:
            if response is not None:
                await response.aclose()
        if response is None or failure == "timeout":
            return Reply(failure=failure)
        return Reply(status=response.status_code, failure="truncated")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep httpx from logging the requests of this block. Rule 5."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def tls_context(*urls: str, ca_bundle: str | PathLike[str] | None = None) -> ssl.SSLContext:
    """Return the context with the trusted authorities: the usual ones, or those in the file `ca_bundle` alone.

    Where none of the addresses is https no certificates are loaded, because that takes time.

    Raises:
        OSError: the file cannot be read as certificates in PEM form.
    """
    if ca_bundle is not None:
        return ssl.create_default_context(cafile=ca_bundle)
    if any(url.lower().startswith("https:") for url in urls):
        return httpx.create_ssl_context(trust_env=False)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def failure_of(error: httpx.HTTPError) -> Failure:
    """Return why there was no answer, as far as the errors below `error` tell."""
    if isinstance(error, httpx.ConnectTimeout):
        return "connect_timeout"
    if isinstance(error, httpx.TimeoutException):
        return "timeout"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, socket.gaierror):
            return "dns"
        cause = cause.__cause__ or cause.__context__
    return "connection"


def unread_reply(response: httpx.Response) -> Reply | None:
    """Return the reply for an answer of which no body is read: it is no success, or compressed. Rule 2."""
    status = response.status_code
    if not httpx.codes.is_success(status):
        return Reply(status=status, retry_after=response.headers.get("Retry-After"))
    encodings = response.headers.get_list("Content-Encoding")
    if any(encoding.strip().lower() != "identity" for encoding in encodings):
        return Reply(status=status, failure="encoded")
    return None


async def _read(response: httpx.Response, most_bytes: int) -> Reply:
    body = bytearray()
    async for chunk in cast("httpx.AsyncByteStream", response.stream):
        body += chunk
        if len(body) > most_bytes:
            return Reply(status=response.status_code, failure="too_large")
    return Reply(status=response.status_code, body=bytes(body))


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
