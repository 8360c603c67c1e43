"""The three requests of a Memory Gateway, over httpx.

1. One deadline and a limit of bytes for each request, see `beaver_toolkit.http`. Requests ask for no compression.
2. No redirects, no retries, no cookies, and no proxies or credentials from the environment.
3. Each operation has its own connections: a slow flush, or an answer with too many bytes, affects no other operation.
4. An add is on the wire once at most, and never on a connection that has been idle: the server may be about to close
   such a connection, and then it is unknown whether the turn arrived.
5. The outcome of an add that was sent is unknown unless an answer confirms or refuses it.
6. The credential is in the bytes only while they are sent, and no error holds a request.
"""

import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TypeVar

import attrs
import httpx

from beaver_hooks_gateway import wire
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
from beaver_hooks_gateway.wire import Body, MalformedError, RecalledMemory
from beaver_hostspecs import Answer, ConfigurationError, Turn
from beaver_toolkit.dns import Resolver
from beaver_toolkit.http import IDLE_CONNECTIONS, BoundedClient, BoundedTransport, PlainClient, Reply, tls_context

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "beaver-hooks-gateway",
}

ClientFactory = Callable[[Operation], httpx.AsyncClient]
T = TypeVar("T")


@attrs.define(kw_only=True)
class Sending:
    """The progress of a request, for a caller that is cancelled while it runs.

    Attributes:
        begun: whether a part of its body was sent.
    """

    begun: bool = False


class GatewayClient:
    """Talks to one gateway as one user, by the rules above. Making it touches no network.

    Args:
        settings: of the gateway.
        factory: makes the `httpx.AsyncClient` of each operation, which is closed with this. With a factory of your own
            rule 2 holds except for proxies and credentials, which its clients choose.

    Raises:
        ConfigurationError: the address or the file of certificates cannot be used.
    """

    def __init__(self, settings: GatewaySettings, *, factory: ClientFactory | None = None) -> None:
        self._settings = settings
        self._urls = {operation: _url(str(settings.base_url), path) for operation, path in PATHS.items()}
        self._factory = factory or client_factory(settings)
        self._clients: dict[Operation, BoundedClient] = {}

    async def search(self, *, session: str, query: str, seconds: float, top_k: int | None = None) -> RecalledMemory:
        """Return the gateway's results for `query`.

        Raises:
            GatewayError: there is no answer that can be used.
        """
        most = self._settings.top_k if top_k is None else top_k
        body = wire.search_body(self._settings, session=session, query=query, top_k=most)
        return await self._request("search", body, partial(wire.parse_found, most=most), seconds)

    async def add(self, turn: Turn, answer: Answer, *, seconds: float, sending: Sending | None = None) -> int:
        """Add a completed turn; return the number of messages.

        Raises:
            GatewayUnknown: it was sent, and the answer was lost, so the message may or may not be stored.
            GatewayError: it did not arrive.
        """
        sending = Sending() if sending is None else sending
        body = wire.add_body(self._settings, turn, answer)
        try:
            await self._request("add", body, wire.parse_object, seconds, sending)
        except GatewayError as error:
            failure = error
        else:
            return len(body["messages"])
        # Rule 5: a refusal is an answer.
        refused = failure.status is not None and not httpx.codes.is_success(failure.status)
        unknown = GatewayUnknown("add", "unknown", status=failure.status)
        raise unknown if sending.begun and not refused else failure

    async def flush(self, *, session: str, seconds: float) -> None:
        """Ask the gateway to turn the added turns into memory.

        Raises:
            GatewayError: no answer confirms it.
        """
        await self._request("flush", wire.flush_body(self._settings, session=session), wire.parse_object, seconds)

    async def close(self) -> None:
        """Close the connections. A later request makes new ones."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _request(
        self,
        operation: Operation,
        body: Body,
        parse: Callable[[bytes], T],
        seconds: float,
        sending: Sending | None = None,
    ) -> T:
        content = _content(body, sending or Sending())
        headers = {**_HEADERS, "Content-Length": str(len(wire.encode(body)))}
        if operation == "add":
            headers["Connection"] = "close"  # Rule 4
        if operation not in self._clients:
            self._clients[operation] = BoundedClient(self._factory(operation))
        reply = await self._clients[operation].post(
            self._urls[operation], content, headers=headers, seconds=seconds, most_bytes=self._settings.max_bytes
        )
        if (failure := _failure(operation, reply)) is not None:
            raise failure
        try:
            return parse(reply.body)
        except MalformedError as error:
            category = error.category
        del reply  # It may repeat the credential, and tracebacks can show local variables.
        raise GatewayMalformed(operation, category)


async def _content(body: Body, sending: Sending) -> AsyncIterator[bytes]:
    """Encode a body at the moment when it is sent. Rule 6."""
    sending.begun = True
    yield wire.encode(body)


def client_factory(settings: GatewaySettings) -> ClientFactory:
    """Return the usual factory of clients, which share the trusted certificates and the name lookups.

    Raises:
        ConfigurationError: the file of certificates cannot be used.
    """
    try:
        context = tls_context(str(settings.base_url), settings.proxy or "", ca_bundle=settings.ca_bundle)
    except OSError:
        problem = "cannot be read as certificates in PEM form; name the file of your certificate authority"
    else:
        return partial(_make_client, settings.proxy, context, Resolver())
    raise ConfigurationError(f"{PATH}.caBundle", problem)


def _make_client(
    proxy: str | None, context: ssl.SSLContext, resolver: Resolver, operation: Operation
) -> httpx.AsyncClient:
    idle = 0 if operation == "add" else IDLE_CONNECTIONS
    return PlainClient(BoundedTransport(context=context, resolver=resolver, proxy=proxy, idle=idle))


def _url(base: str, path: str) -> httpx.URL:
    """Return the address of an operation, without a dot at the end of the name, which HTTP and TLS do not allow.

    Raises:
        ConfigurationError: the host is no name, for example invalid punycode.
    """
    try:
        url = httpx.URL(base.rstrip("/") + path)
        return url.copy_with(host=url.host.removesuffix("."))
    except (httpx.InvalidURL, UnicodeError):
        pass  # raised below, so that the error is not chained
    raise ConfigurationError(f"{PATH}.baseUrl", "is not a valid address; check the name of the host")


def _failure(operation: Operation, reply: Reply) -> GatewayError | None:
    if reply.failure in {"timeout", "connect_timeout"}:
        return GatewayTimedOut(operation, "timeout")
    if reply.status is None:
        return GatewayUnreachable(operation, str(reply.failure))
    if not reply.is_success:
        return from_status(operation, reply.status)
    return None if reply.failure is None else GatewayMalformed(operation, reply.failure, status=reply.status)
