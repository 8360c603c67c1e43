"""Any endpoint that speaks OpenAI's chat completions, over httpx. The only module of the host that imports httpx.

1. One deadline covers connecting, retries and every byte of the answer, even of a slow one.
2. The bytes of the answer are limited, and counted as they arrive from the network; the request asks for an
   uncompressed answer, and a compressed one is refused.
3. A busy provider is asked again, as long as no part of its answer was used, and not if the wait it asks for exceeds
   the deadline.
4. No redirects, no proxies and no credentials from the environment: requests go only to the configured address.
5. The credential enters the request last, and errors are raised outside of the handlers of httpx's own, which contain
   the request.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs
import httpx

from beaver_hooks.agent.errors import ProviderError
from beaver_hooks.agent.messages import ChatMessage, Completion, OnDelta
from beaver_hooks.agent.providers import faults
from beaver_hooks.agent.providers.openai_stream import EventDecoder, StreamedCompletion
from beaver_hooks.agent.providers.openai_wire import parse_completion, request_body
from beaver_hooks.config.provider import ProviderSettings
from beaver_hostspecs import Clock, Secret, SystemClock
from beaver_toolkit.http import BoundedTransport, PlainClient, tls_context
from beaver_toolkit.retry import Retry

Sleep = Callable[[float], Awaitable[object]]

BUSY = frozenset({429, 503})
"""The statuses after which a provider is asked again."""

FIRST_WAIT = 0.5
"""Seconds before the first retry."""

_JSON, _EVENTS = "application/json", "text/event-stream"
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "beaver-hooks", "Content-Type": _JSON}
_ERROR_BYTES = 64 * 1024
_GRACE = 0.25
"""Seconds for the end of a response whose answer is complete; then the connection is given up."""


@attrs.frozen(kw_only=True)
class _Refused:
    """The server's refusal. It is not raised where it is read: an error keeps frames with the body."""

    error: ProviderError
    retry_after: str | None


class OpenAIProvider:
    """A model behind an OpenAI-compatible endpoint. See the rules above.

    Args:
        settings: of the kind `openai`.
        clock: tells the time for a Retry-After that is a date.
        sleep: waits before the provider is asked again.
    """

    def __init__(self, settings: ProviderSettings, *, clock: Clock | None = None, sleep: Sleep = asyncio.sleep) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._retry = Retry(statuses=BUSY, most=settings.max_retries, first=FIRST_WAIT)
        self._client = PlainClient(BoundedTransport(context=tls_context(self._url)))

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        on_delta: OnDelta | None = None,
    ) -> Completion:
        """Return the model's answer; see `Provider.complete`.

        Raises:
            ProviderError: the model did not answer.
        """
        body = request_body(str(self._settings.model), messages, tools, stream=on_delta is not None)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds) as deadline:
                return await self._until_answered(body, on_delta, deadline)
        except TimeoutError:
            if not deadline.expired():
                raise
        raise faults.fault("timeout", self._settings.timeout_seconds)

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _until_answered(self, body: bytes, on_delta: OnDelta | None, deadline: asyncio.Timeout) -> Completion:
        """Rule 3."""
        attempt = 0
        while True:
            answer = await self._ask(body, on_delta)
            if isinstance(answer, Completion):
                return answer
            status = answer.error.status or 0
            wait = self._retry.wait(status, answer.retry_after, attempt=attempt, now=self._clock.now())
            if wait is None or wait >= _left(deadline):
                raise answer.error
            await self._sleep(wait)
            attempt += 1

    async def _ask(self, body: bytes, on_delta: OnDelta | None) -> Completion | _Refused:
        response = None
        try:
            async with self._client.stream(
                "POST", self._url, content=body, headers=_HEADERS, auth=self._authorise
            ) as response:
                if response.status_code != httpx.codes.OK:
                    return await self._refusal(response)
                return await self._answer(response, on_delta)
        except httpx.HTTPError:
            pass  # rule 5
        raise faults.fault("connection" if response is None else "truncated")

    @property
    def _url(self) -> str:
        return f"{str(self._settings.base_url).rstrip('/')}/chat/completions"

    def _authorise(self, request: httpx.Request) -> httpx.Request:
        """Rule 5."""
        key: Secret | None = self._settings.api_key
        if key is not None:
            request.headers["Authorization"] = f"Bearer {key.reveal()}"
        return request

    async def _refusal(self, response: httpx.Response) -> _Refused:
        body = bytearray()
        # The status is known; a part of the body is enough.
        with contextlib.suppress(httpx.HTTPError):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _ERROR_BYTES:
                    break
        error = faults.from_status(response.status_code, faults.detail_of(bytes(body[:_ERROR_BYTES])))
        return _Refused(error=error, retry_after=response.headers.get("Retry-After"))

    async def _answer(self, response: httpx.Response, on_delta: OnDelta | None) -> Completion:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise faults.malformed("it is compressed, although the request did not allow that")
        if kind == _EVENTS and on_delta is not None:
            return await self._streamed(response, on_delta)
        if kind != _JSON:
            raise faults.malformed("its content type is not the one that the request names")
        # Servers that cannot stream answer in one piece.
        completion = parse_completion(b"".join([chunk async for chunk in self._capped(response)]))
        if on_delta is not None and completion.text:
            on_delta(completion.text)
        return completion

    async def _streamed(self, response: httpx.Response, on_delta: OnDelta) -> Completion:
        decoder, completion = EventDecoder(), StreamedCompletion()
        async with contextlib.aclosing(self._capped(response)) as chunks:
            async for chunk in chunks:
                for text in map(completion.feed, decoder.feed(chunk)):
                    if text:
                        on_delta(text)
                if completion.done:
                    break
            answer = completion.finish()
            await _read_end(chunks)
        return answer

    async def _capped(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Rule 2."""
        received = 0
        async for chunk in response.aiter_raw():
            received += len(chunk)
            if received > self._settings.max_bytes:
                raise faults.fault("too_large", self._settings.max_bytes)
            yield chunk


def make(settings: ProviderSettings) -> OpenAIProvider:
    """Return the provider for `settings`."""
    return OpenAIProvider(settings)


async def _read_end(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest after the answer, so that the connection can be used again. The answer is complete without it."""
    with contextlib.suppress(TimeoutError, httpx.HTTPError, ProviderError):
        async with asyncio.timeout(_GRACE):
            async for _ in chunks:
                pass


def _left(deadline: asyncio.Timeout) -> float:
    """Return the seconds until the deadline."""
    return (deadline.when() or 0.0) - asyncio.get_running_loop().time()
