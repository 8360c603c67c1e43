"""`beaver_toolkit.http` for callers in threads: the same rules, but name lookups have the system's own limit."""

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpcore
import httpx

from beaver_toolkit.http import IDLE_SECONDS, NO_COOKIES, Reply, failure_of, quiet, unread_reply

CONNECTIONS = 8

Auth = Callable[[httpx.Request], httpx.Request]
Monotonic = Callable[[], float]


class Deadline(threading.local):
    """When the exchange of the current thread must end; `end` is set before it begins."""

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self.end = float("inf")

    def left(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
        """Return how many seconds the next step may take.

        Raises:
            TimeoutException: the deadline has passed; it is of the type `error`.
        """
        left = self.end - self._monotonic()
        if left <= 0:
            raise error("the deadline has passed")
        least = left if timeout is None else min(left, timeout)
        return None if least == float("inf") else least


class SyncBoundedTransport(httpx.HTTPTransport):
    """httpx's transport over a pool whose connections keep the deadline of the thread that uses them.

    The timeouts of httpx start again with every byte. Its pool is replaced here, and nowhere else.

    Args:
        context: the trusted certificates, see `beaver_toolkit.http.tls_context`.
        deadline: asked before every step.
    """

    def __init__(self, *, context: ssl.SSLContext, deadline: Deadline) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Backend(deadline),
        )


class SyncPlainClient(httpx.Client):
    """A client without cookies, and without proxies and credentials of the environment."""

    def __init__(self, transport: httpx.BaseTransport, *, timeout: httpx.Timeout) -> None:
        super().__init__(transport=transport, trust_env=False, timeout=timeout)

    @property  # type: ignore[misc] # it cannot be set
    def cookies(self) -> httpx.Cookies:
        """Always none."""
        return NO_COOKIES


class SyncBoundedClient:
    """Posts from threads, by the rules of `beaver_toolkit.http`.

    Args:
        context: the trusted certificates, see `beaver_toolkit.http.tls_context`.
        connect_seconds: the most seconds for a connection, because a missing machine never answers.
        monotonic: the clock, in seconds.
    """

    def __init__(
        self, context: ssl.SSLContext, *, connect_seconds: float | None = None, monotonic: Monotonic = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._deadline = Deadline(monotonic)
        transport = SyncBoundedTransport(context=context, deadline=self._deadline)
        self._client = SyncPlainClient(transport, timeout=httpx.Timeout(None, connect=connect_seconds))

    def post(
        self,
        url: str,
        content: bytes,
        *,
        headers: Mapping[str, str],
        auth: Auth | None = None,
        seconds: float,
        most_bytes: int,
    ) -> Reply:
        """Post `content` once; return how that ended. `auth` adds the credential last."""
        self._deadline.end = self._monotonic() + seconds
        status: int | None = None
        try:
            with (
                quiet(),
                self._client.stream(
                    "POST",
                    url,
                    content=content,
                    headers=headers,
                    auth=auth,
                    follow_redirects=False,
                    extensions={"timeout": {**self._client.timeout.as_dict(), "pool": seconds}},
                ) as response,
            ):
                status = response.status_code
                return unread_reply(response) or _read(response, most_bytes)
        except httpx.TimeoutException as error:
            return Reply(failure=failure_of(error))
        except httpx.HTTPError as error:
            return Reply(status=status, failure="truncated" if status is not None else failure_of(error))

    def close(self) -> None:
        """Close the connections, those in use too."""
        self._client.close()


def _read(response: httpx.Response, most_bytes: int) -> Reply:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > most_bytes:
            return Reply(status=response.status_code, failure="too_large")
    return Reply(status=response.status_code, body=bytes(body))


class _Stream(httpcore.NetworkStream):
    """A connection that keeps the deadline of the thread that uses it."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Connects as httpcore does, within the deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._deadline)
