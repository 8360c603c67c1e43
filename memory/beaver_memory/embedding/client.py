"""Embedding providers over HTTP, through `beaver_toolkit.http_sync`.

1. One deadline for each request with its repetitions: connecting, sending, and every byte of the answer, however slowly
   it drips. Resolving the provider's name is up to the system, and has the system's limit.
2. No more bytes than an answer of that many vectors needs. Requests ask for uncompressed answers; others are refused.
3. If a provider is busy or fails, the request is repeated a few times, as long as the deadline leaves time.
4. No redirects, and no proxies or credentials from the environment: requests go to the configured address alone.
5. The credential enters the request last of all, and no error holds a request. Texts of errors are constant.
6. Of a refusal only the status and Retry-After are read: providers repeat the text in the rest.
"""

import threading
import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import httpx
import numpy as np
from attrs import field
from numpy.typing import NDArray

from beaver_hostspecs import Clock, Secret, SystemClock
from beaver_memory.embedding import wire
from beaver_memory.embedding.errors import Category, EmbeddingError, failure
from beaver_memory.embedding.protocol import Purpose, Trace, silent
from beaver_memory.embedding.settings import PATH
from beaver_memory.embedding.wire import Wire
from beaver_toolkit.http import Reply, tls_context
from beaver_toolkit.http_sync import SyncBoundedClient
from beaver_toolkit.retry import Retry

_BUSY = 429
_REDIRECTS, _SERVER = range(300, 400), range(500, 600)

_STATUSES = MappingProxyType(
    {
        401: ("does not accept the credential", f"Set {PATH}.apiKeyEnv to a variable that holds a valid key."),
        403: ("does not allow this", f"Check the permissions of the key in {PATH}.apiKeyEnv."),
        404: ("does not know this address or model", f"Check {PATH}.baseUrl and model."),
        _BUSY: ("gets too many requests", "Wait a while, or check the account's quota."),
    }
)

_BROKEN: MappingProxyType[str, tuple[Category, str, str]] = MappingProxyType(
    {
        "connection": (
            "unavailable",
            "cannot be reached",
            f"Check {PATH}.baseUrl, the network, and that the server runs.",
        ),
        "dns": ("unavailable", "has a name that cannot be resolved", f"Check {PATH}.baseUrl and the network."),
        "connect_timeout": ("timeout", "refuses connections", f"Check {PATH}.baseUrl, and that the server runs."),
        "tls": ("unavailable", "has no trusted certificate", f"Check {PATH}.baseUrl and its certificate."),
        "truncated": ("unavailable", "stopped in the middle of its answer", "Try again, and check the network."),
        "too_large": ("malformed", "sent an answer that is too large", f"Check {PATH}.baseUrl and dimensions."),
        "encoded": (
            "malformed",
            "compressed its answer, although the request did not allow that",
            f"Check {PATH}.baseUrl.",
        ),
    }
)

RETRY = Retry(statuses=frozenset({429, *range(500, 600)}), most=2, first=0.25, longest=30.0)

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "beaver-hooks-local",
}
_CONNECT = 3.0
"""The most seconds for a connection: a machine that does not exist does not answer at all."""


@attrs.frozen(kw_only=True)
class Endpoint:
    """A provider's address, and the settings of requests to it.

    Attributes:
        provider: its name.
        wire: its wire format.
        base_url: its address.
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


class HttpEncoder:
    """An `Encoder` that calls a provider over HTTP. Created without network access; see the rules above.

    Args:
        endpoint: the provider.
        trace: receives repetitions.
        clock: the time of day, for a Retry-After that is a date.
        monotonic: a clock in seconds.
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
        self._url = endpoint.base_url.rstrip("/") + endpoint.wire.path
        self._closed = threading.Event()
        context = tls_context(self._url)
        self._client = SyncBoundedClient(context, connect_seconds=_CONNECT, monotonic=monotonic)

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return the vectors of the texts, batch by batch; see `Encoder`."""
        size = self._endpoint.batch
        parts = [self._batch(texts[at : at + size], purpose) for at in range(0, len(texts), size)]
        return np.concatenate(parts)

    def close(self) -> None:
        """Close the connections, and end the waits. A request in progress fails."""
        self._closed.set()
        self._client.close()

    def _batch(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float64]:
        asked = self._endpoint
        content = wire.body(asked.wire, asked.model, texts, purpose, asked.dimensions)
        answer = self._ask(content, wire.most_bytes(len(texts), asked.dimensions))
        try:
            return wire.parse(asked.wire, answer, count=len(texts), dimensions=asked.dimensions)
        except wire.AnswerError as error:
            category, problem = error.category, error.problem
        raise _unusable(asked.provider, category, problem)

    def _ask(self, content: bytes, most: int) -> bytes:
        """Return the answer to a request body. Rules 1 and 3."""
        asked = self._endpoint
        end, attempt = self._monotonic() + asked.seconds, 0
        while True:
            reply = self._post(content, most, end - self._monotonic())
            if reply.failure is not None:
                raise _broken(asked.provider, reply.failure, asked.seconds)
            if reply.status == httpx.codes.OK:
                return reply.body
            status = reply.status or 0
            wait = RETRY.wait(status, reply.retry_after, attempt=attempt, now=self._clock.now())
            if wait is None or wait >= end - self._monotonic() or self._paused(status, wait):
                raise _from_status(asked.provider, status)
            attempt += 1

    def _post(self, content: bytes, most: int, seconds: float) -> Reply:
        return self._client.post(
            self._url, content, headers=_HEADERS, auth=self._authorise, seconds=seconds, most_bytes=most
        )

    def _authorise(self, request: httpx.Request) -> httpx.Request:
        """Add the credential to a request. Rule 5."""
        if self._endpoint.key is not None:
            request.headers["Authorization"] = f"Bearer {self._endpoint.key.reveal()}"
        return request

    def _paused(self, status: int, wait: float) -> bool:
        """Wait; return whether the encoder was closed meanwhile."""
        self._trace("embedding_repeated", provider=self._endpoint.provider, status=status, seconds=wait)
        return self._closed.wait(wait)


def _broken(provider: str, what: str, seconds: float) -> EmbeddingError:
    """Return the error for a failed request.

    Args:
        provider: the provider.
        what: the `failure` of a `beaver_toolkit.http.Reply`.
        seconds: the time limit of the request.
    """
    if what == "timeout":
        return failure(
            provider,
            "timeout",
            f"The embedding provider {provider} did not answer within {seconds:g} seconds",
            f"Try again, or raise {PATH}.timeoutSeconds.",
        )
    category, problem, remedy = _BROKEN[what]
    return failure(provider, category, f"The embedding provider {provider} {problem}", remedy)


def _from_status(provider: str, status: int) -> EmbeddingError:
    """Return the error for an HTTP status that is no success."""
    problem, remedy = _explained(status)
    category: Category = "unavailable" if status == _BUSY or status in _SERVER else "refused"
    said = f"The embedding provider {provider} {problem} (HTTP {status})"
    return failure(provider, category, said, remedy, status=status)


def _unusable(provider: str, category: Category, problem: str) -> EmbeddingError:
    """Return the error for an answer that holds no embeddings.

    Args:
        provider: the provider.
        category: the kind of defect.
        problem: the defect in words.
    """
    return failure(
        provider,
        category,
        f"The answer of the embedding provider {provider} {problem}",
        f"Check {PATH}.baseUrl, model and dimensions.",
    )


def _explained(status: int) -> tuple[str, str]:
    if status in _SERVER:
        return "failed", "Try again later."
    if status in _REDIRECTS:
        return (
            "redirected the request to another address",
            f"Set {PATH}.baseUrl to its address; redirects are not followed.",
        )
    return _STATUSES.get(status, ("refused the request", f"Check {PATH}.baseUrl, model and dimensions."))
