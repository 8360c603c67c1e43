"""Embedding providers over HTTP, through httpx and what it stands on.

Nobody but this module and `deadlines` imports them.

1. One deadline for each request with its repetitions: connecting, sending, and every byte of the answer, however slowly
   it drips. Looking up the provider's name is the system's, and has the system's limit.
2. No more bytes than an answer of that many vectors needs. It is asked for uncompressed; a compressed one is refused.
3. A provider that is busy or fails is asked again, a few times, as long as the deadline leaves time for the wait.
4. No redirects, and no proxies or credentials from the environment: what is configured is where it goes.
5. The credential enters the request last of all. Errors are raised where the library's own are gone: they hold it.
6. Of a refusal the status is read and nothing else: providers repeat the text in it.
"""

import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import httpcore
import httpx
import numpy as np
from attrs import field
from numpy.typing import NDArray

from beaver_hooks_local.embedding import faults, wire
from beaver_hooks_local.embedding.deadlines import Backend, Deadline
from beaver_hooks_local.embedding.protocol import Purpose, Trace, silent
from beaver_hooks_local.embedding.retrying import wait_seconds
from beaver_hooks_local.embedding.wire import Wire
from beaver_hostspecs import Clock, Secret, SystemClock

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "beaver-hooks-local",
}
_FAILURES = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_MOST_CONNECTIONS = 8
_EXPIRY = 5.0
"""Seconds that an idle connection is kept."""
_CONNECT = 3.0
"""The most seconds for a connection: a machine that is not there does not answer at all."""


@attrs.frozen(kw_only=True)
class Endpoint:
    """Who is asked, and how.

    Attributes:
        provider: its name.
        wire: how it is spoken to.
        base_url: where it is.
        key: the credential, or none.
        model: the model to ask for.
        dimensions: the length of its vectors.
        seconds: how long a request may take in all.
        batch: the most texts of one request.
    """

    provider: str
    wire: Wire = field(repr=False)
    base_url: str
    key: Secret | None = None
    model: str
    dimensions: int
    seconds: float
    batch: int


@attrs.frozen(kw_only=True)
class _Refusal:
    status: int
    retry_after: str | None


class HttpEncoder:
    """An `Encoder` that asks a provider over HTTP. Made without touching the network; see the rules above.

    Args:
        endpoint: who is asked.
        trace: is told of repetitions.
        clock: tells the time of day, for a Retry-After that is a date.
        monotonic: tells the seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        trace: Trace = silent,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._trace = trace
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._url = httpx.URL(endpoint.base_url.rstrip("/") + endpoint.wire.path)
        self._deadline = Deadline(monotonic)
        self._closed = threading.Event()
        self._pool = httpcore.ConnectionPool(
            ssl_context=_context(self._url),
            max_connections=_MOST_CONNECTIONS,
            keepalive_expiry=_EXPIRY,
            network_backend=Backend(self._deadline),
        )

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return the vectors of the texts, batch by batch; see `Encoder`."""
        size = self._endpoint.batch
        parts = [self._batch(texts[at : at + size], purpose) for at in range(0, len(texts), size)]
        return np.concatenate(parts)

    def close(self) -> None:
        """Close the connections, and end the waits. A request that is under way keeps its deadline."""
        self._closed.set()
        self._pool.close()

    def _batch(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float64]:
        asked = self._endpoint
        content = wire.body(asked.wire, asked.model, texts, purpose, asked.dimensions)
        answer = self._ask(content, wire.most_bytes(len(texts), asked.dimensions))
        try:
            return wire.parse(asked.wire, answer, count=len(texts), dimensions=asked.dimensions)
        except wire.AnswerError as error:
            category, problem = error.category, error.problem
        raise faults.unusable(asked.provider, category, problem)

    def _ask(self, content: bytes, most: int) -> bytes:
        """Return the answer to a body. Rules 1 and 3."""
        end, attempt = self._monotonic() + self._endpoint.seconds, 0
        self._deadline.end = end
        while True:
            outcome = self._exchange(content, most)
            if isinstance(outcome, bytes):
                return outcome
            if isinstance(outcome, str):
                raise faults.broken(self._endpoint.provider, outcome, self._endpoint.seconds)
            now = self._clock.now()
            wait = wait_seconds(outcome.status, outcome.retry_after, attempt=attempt, now=now)
            if wait is None or wait >= end - self._monotonic() or self._paused(outcome.status, wait):
                raise faults.from_status(self._endpoint.provider, outcome.status)
            attempt += 1

    def _paused(self, status: int, wait: float) -> bool:
        """Wait; return whether it was closed meanwhile."""
        self._trace("embedding_repeated", provider=self._endpoint.provider, status=status, seconds=wait)
        return self._closed.wait(wait)

    def _exchange(self, content: bytes, most: int) -> bytes | _Refusal | str:
        """Return the answer, the refusal, or the name of what went wrong. Rule 5."""
        answered = False
        try:
            response = self._pool.handle_request(self._request(content))
            try:
                answered = True
                return self._read(response, most)
            finally:
                response.close()
        except httpcore.ConnectTimeout:
            return "connect_timeout"
        except httpcore.TimeoutException:
            return "timeout"
        except _FAILURES as error:
            return "truncated" if answered else "tls" if _is_tls(error) else "connection"

    def _request(self, content: bytes) -> httpcore.Request:
        url = self._url
        headers = {"Host": url.netloc.decode("ascii"), **_HEADERS, "Content-Length": str(len(content))}
        if self._endpoint.key is not None:
            headers["Authorization"] = f"Bearer {self._endpoint.key.reveal()}"
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        timeouts = {"pool": self._endpoint.seconds, "connect": _CONNECT}
        return httpcore.Request(
            "POST",
            target,
            headers=[(name.encode("ascii"), value.encode("utf-8")) for name, value in headers.items()],
            content=content,
            extensions={"timeout": timeouts},
        )

    def _read(self, response: httpcore.Response, most: int) -> bytes | _Refusal | str:
        """Rules 2 and 6."""
        headers = {name.lower(): value for name, value in response.headers}
        if response.status != httpx.codes.OK:
            return _Refusal(status=response.status, retry_after=headers.get(b"retry-after", b"").decode("latin-1"))
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            return "encoded"
        body = bytearray()
        for chunk in response.iter_stream():
            body += chunk
            if len(body) > most:
                return "too_large"
        return bytes(body)


def _context(url: httpx.URL) -> ssl.SSLContext:
    """Return what is trusted. Where nothing is encrypted, no certificates are loaded, which takes its time."""
    if url.scheme == "https":
        return httpx.create_ssl_context(trust_env=False)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
