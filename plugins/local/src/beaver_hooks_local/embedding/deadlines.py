"""Connections that keep one deadline for a whole request, however slowly its bytes drip.

The library's own timeouts start again with every byte.
"""

import ssl
import threading
from collections.abc import Callable, Iterable
from typing import Any

import httpcore


class Deadline(threading.local):
    """When the request of this thread must be done; set `end` before it begins."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.end = float("inf")

    def left(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float | None:
        """Return how many seconds one step may take."""
        left = self.end - self._monotonic()
        if left <= 0:
            raise error("the deadline has passed")
        least = left if timeout is None else min(left, timeout)
        return None if least == float("inf") else least


class _Stream(httpcore.NetworkStream):
    """A connection that keeps the deadline of whoever uses it."""

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


class Backend(httpcore.SyncBackend):
    """Connects as the library does, and gives each connection the deadline of whoever uses it."""

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
        """Connect within what is left of the time."""
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._deadline)
