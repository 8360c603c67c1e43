"""The three requests of a Memory Gateway, over httpx and what it stands on. The only module that imports httpx.

1. One deadline for each request: waiting for a connection, connecting, and every byte of the answer, however slowly it
   drips.
2. No more bytes than allowed, counted as they come from the network. The answer is asked for uncompressed, and a
   compressed one is refused.
3. No redirects, no retries, and no proxies or credentials from the environment: what is configured is where it goes.
4. Each operation has its own connections: a flush that takes its time, or an answer with too many bytes, is nothing to
   the others. An add is on the wire once at most, and never on a connection that has been idle: one that the server was
   about to close would leave open whether the turn arrived.
5. An add that was sent and got no answer that says so, has an outcome that nobody knows.
6. The credential is in the bytes only while they are sent. Errors are raised where httpx's own are gone: those hold
   the request.
7. The name is looked up where a lookup that hangs holds up nobody else: see `connecting`.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from typing import cast

import attrs
import httpcore
import httpx

from beaver_hooks_gateway import wire
from beaver_hooks_gateway.connecting import Backend, Resolver
from beaver_hooks_gateway.errors import (
    PATHS,
    GatewayError,
    GatewayMalformed,
    GatewayTimedOut,
    GatewayUnknown,
    GatewayUnreachable,
    Operation,
    from_status,
)
from beaver_hooks_gateway.settings import PATH, GatewaySettings
from beaver_hooks_gateway.wire import Body, Found, Identity, MalformedError
from beaver_hostspecs import Answer, ConfigurationError, Secret, Turn

MOST_CONNECTIONS = 100
"""Requests of one kind at a time; further ones wait, within their deadlines."""

MOST_IDLE = 10
"""Connections of one kind that are kept open for the next request: each of them is looked at by every request."""

_EXPIRY = 5.0
"""Seconds that an idle connection is kept."""

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "beaver-hooks-gateway",
}
_FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
"""What the library raises; it has no name for all of them."""


@attrs.define(kw_only=True)
class Sending:
    """How far a request has come, for whoever is interrupted while it runs.

    Attributes:
        begun: whether its body has begun to go out.
    """

    begun: bool = False


class _Content:
    """A body on its way. It is encoded when it is sent, and shows itself to nobody."""

    def __init__(self, body: Body, sending: Sending) -> None:
        self._body = body
        self._sending = sending
        self.length = len(wire.encode(body))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._sending.begun = True
        yield wire.encode(self._body)


class GatewayClient:
    """Talks to one gateway as one user. Made without touching the network; see the rules above.

    Raises:
        ConfigurationError: the address or the file of certificates cannot be used.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.identity = Identity(
            user_id=str(settings.user_id),
            user_key=cast("Secret", settings.user_key),
            app_id=settings.app_id,
            project_id=settings.project_id,
        )
        self._settings = settings
        self._urls = {operation: _url(str(settings.base_url), path) for operation, path in PATHS.items()}
        context = _context(settings)
        backend = Backend(Resolver())
        self._pools = {
            operation: _pool(settings, context, backend, kept=0 if operation == "add" else MOST_IDLE)
            for operation in PATHS
        }
        # Waiting here costs nothing; the library's own queue is gone through anew at every step of every request.
        self._room = {operation: asyncio.Semaphore(MOST_CONNECTIONS) for operation in PATHS}

    async def search(self, *, session: str, query: str, seconds: float, top_k: int | None = None) -> Found:
        """Return what the gateway recalls for `query`.

        Raises:
            GatewayError: there is no answer that can be used.
        """
        most = self._settings.top_k if top_k is None else top_k
        body = wire.search_body(self.identity, session=session, query=query, scope=self._settings.scope, top_k=most)
        found = _found(await self._post("search", body, Sending(), seconds), most)
        if isinstance(found, Found):
            return found
        raise GatewayMalformed("search", found)

    async def add(self, turn: Turn, answer: Answer, *, seconds: float, sending: Sending | None = None) -> int:
        """Add a completed turn; return how many messages that were.

        Raises:
            GatewayUnknown: it was sent, and the answer was lost, so the message may or may not be stored.
            GatewayError: it did not arrive.
        """
        sending = Sending() if sending is None else sending
        body = wire.add_body(self.identity, turn, answer)
        try:
            problem = _problem(await self._post("add", body, sending, seconds))
        except GatewayError as failure:
            raise _judged(failure, sending) from None
        if problem is None:
            return len(body["messages"])
        raise GatewayUnknown("add", "unknown")

    async def flush(self, *, session: str, seconds: float) -> None:
        """Let the gateway make memory of what was added.

        Raises:
            GatewayError: there is no answer that says that it did.
        """
        body = wire.flush_body(self.identity, session=session)
        problem = _problem(await self._post("flush", body, Sending(), seconds))
        if problem is not None:
            raise GatewayMalformed("flush", problem)

    async def close(self) -> None:
        """Close the connections."""
        for pool in self._pools.values():
            await pool.aclose()

    async def _post(self, operation: Operation, body: Body, sending: Sending, seconds: float) -> bytes:
        """Return the body of a successful answer. Rule 1."""
        try:
            async with asyncio.timeout(seconds), self._room[operation]:
                return await self._exchange(operation, _Content(body, sending))
        except TimeoutError:
            pass  # raised below, so that the error is not chained to frames of the library
        raise GatewayTimedOut(operation, "timeout")

    async def _exchange(self, operation: Operation, content: _Content) -> bytes:
        url = self._urls[operation]
        headers = {"Host": url.netloc.decode("ascii"), **_HEADERS, "Content-Length": str(content.length)}
        if operation == "add":
            headers["Connection"] = "close"
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        request = httpcore.Request("POST", target, headers=[*headers.items()], content=content)
        status: int | None = None
        outcome: bytes | str
        try:
            response = await self._pools[operation].handle_async_request(request)
            try:
                status = response.status
                outcome = await self._read(response)
            finally:
                await response.aclose()
        except _FAILURES as error:
            outcome = "truncated" if status is not None else _category(error)
        # Rule 6: here `error` is gone, and with it the request.
        if isinstance(outcome, bytes):
            return outcome
        raise _failure(operation, outcome, status)

    async def _read(self, response: httpcore.Response) -> bytes | str:
        """Return the body of an answer, or the category of what is wrong with it: an error would hold the body.

        Rule 2. What a refusal says is not read: nothing of it is shown.
        """
        if not httpx.codes.is_success(response.status):
            return "refused"
        encodings = [value.strip().lower() for name, value in response.headers if name.lower() == b"content-encoding"]
        if any(encoding != b"identity" for encoding in encodings):
            return "encoded"
        most, body = self._settings.max_bytes, bytearray()
        async for chunk in response.aiter_stream():
            body += chunk
            if len(body) > most:
                return "too_large"
        return bytes(body)


def _url(base: str, path: str) -> httpx.URL:
    """Return the address of an operation. The dot that may end a name is nothing to HTTP and TLS.

    Raises:
        ConfigurationError: the name is none; a host in punycode that stands for nothing, for example.
    """
    try:
        url = httpx.URL(base.rstrip("/") + path)
        return url.copy_with(host=url.host.removesuffix("."))
    except (httpx.InvalidURL, UnicodeError):
        pass  # raised below, so that the error is not chained
    raise ConfigurationError(f"{PATH}.baseUrl", "is not a valid address; check the name of the host")


def _failure(operation: Operation, category: str, status: int | None) -> GatewayError:
    if status is None:
        return GatewayUnreachable(operation, category)
    if not httpx.codes.is_success(status):
        return from_status(operation, status)
    return GatewayMalformed(operation, category, status=status)


def _found(answer: bytes, most: int) -> Found | str:
    """Return what was found, or the category of what is wrong with the answer."""
    try:
        return wire.parse_found(answer, most=most)
    except MalformedError as error:
        return error.category


def _problem(answer: bytes) -> str | None:
    """Return the category of what is wrong with the answer to an add or a flush, or `None`."""
    try:
        wire.parse_done(answer)
    except MalformedError as error:
        return error.category
    return None


def _pool(
    settings: GatewaySettings, context: ssl.SSLContext, backend: Backend, *, kept: int
) -> httpcore.AsyncConnectionPool:
    """Return what makes connections and keeps so many idle ones.

    Not a whole client: that would keep cookies and log addresses. Without timeouts of its own: rule 1. And made here,
    because httpx has no place for a network of one's own: rule 7.
    """
    if settings.proxy is None:
        return httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=MOST_CONNECTIONS,
            max_keepalive_connections=kept,
            keepalive_expiry=_EXPIRY,
            network_backend=backend,
        )
    return httpcore.AsyncHTTPProxy(
        proxy_url=settings.proxy,
        ssl_context=context,
        max_connections=MOST_CONNECTIONS,
        max_keepalive_connections=kept,
        keepalive_expiry=_EXPIRY,
        network_backend=backend,
    )


def _context(settings: GatewaySettings) -> ssl.SSLContext:
    """Return what is trusted. Where nothing is encrypted, no certificates are loaded, which takes its time."""
    if settings.ca_bundle is not None:
        try:
            return ssl.create_default_context(cafile=settings.ca_bundle)
        except OSError:
            pass  # raised below, so that the error is not chained
        raise ConfigurationError(
            f"{PATH}.caBundle",
            "cannot be read as certificates in PEM form; name the file of your certificate authority",
        )
    addresses = (str(settings.base_url), settings.proxy or "")
    if any(address.lower().startswith("https:") for address in addresses):
        return httpx.create_ssl_context(trust_env=False)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _category(error: Exception) -> str:
    """Return why there is no connection, as far as the errors below tell."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "tls"
        if isinstance(cause, socket.gaierror):
            return "dns"
        cause = cause.__cause__ or cause.__context__
    return "connection"


def _judged(failure: GatewayError, sending: Sending) -> GatewayError:
    """Rule 5: what a failed add means. A refusal is an answer; anything else, once it was sent, is none."""
    refused = failure.status is not None and not httpx.codes.is_success(failure.status)
    if refused or not sending.begun:
        return failure
    return GatewayUnknown("add", "unknown", status=failure.status)
