"""The small language model that the host lends to plugins: the OpenAI-compatible endpoint of `host.smallModel`.

Requests keep the rules of `beaver_toolkit.http`: one deadline, a limit of bytes, one address, no redirects. The module
imports httpx, so the host imports it only where the section is set.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Protocol

import httpx

from beaver_hooks.config.provider import SmallModelSettings
from beaver_hostspecs import BeaverError
from beaver_toolkit.http import BoundedClient, BoundedTransport, PlainClient, Reply, tls_context
from beaver_toolkit.strict_json import InvalidJson, loads

MOST_BYTES = 256 * 1024
"""Bytes of an answer."""

_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "beaver-hooks",
}
_REFUSALS = {401: "unauthorised", 403: "unauthorised", 404: "not_found", 429: "rate_limited"}


class SmallModelFailed(BeaverError):
    """The small model did not answer; holds no text of a request, of an answer or of a credential.

    Attributes:
        category: `unauthorised`, `not_found`, `rate_limited`, `http_error`, `malformed`, or a failure of
            `beaver_toolkit.http.Reply`, for example `timeout`.
        status: the HTTP status, or `None`.
    """

    def __init__(self, category: str, status: int | None = None) -> None:
        self.category, self.status = category, status
        shown = category if status is None else f"{category}, HTTP {status}"
        super().__init__(f"the small model did not answer ({shown}); check `host.smallModel`")


class Tell(Protocol):
    """Receives events with their facts."""

    def __call__(self, name: str, facts: Mapping[str, object], *, loudly: bool = False) -> None:
        """Take an event, `loudly` if a person should meet it."""


class HttpSmallModel:
    """A `SmallModel` behind an endpoint. Making it sends nothing.

    Args:
        settings: of the endpoint.
        tell: receives each failure as the event `small_model_failed`; a call that is cancelled is a `timeout`.
    """

    def __init__(self, settings: SmallModelSettings, *, tell: Tell) -> None:
        self._settings, self._tell = settings, tell
        self._url = httpx.URL(f"{settings.base_url.rstrip('/')}/chat/completions")
        self._client = BoundedClient(PlainClient(BoundedTransport(context=tls_context(str(self._url)))))

    async def complete(self, prompt: str, *, max_tokens: int) -> str:
        """Return the model's completion of `prompt`.

        Raises:
            SmallModelFailed: there is no answer that can be used.
        """
        try:
            reply = await self._asked(_body(self._settings.model, prompt, max_tokens))
        except asyncio.CancelledError:
            # The plugin, or the host that closes, allows less time than the settings.
            self._failed("timeout")
            raise
        text = _text(reply.body) if reply.is_success and reply.failure is None else None
        if text is None:
            raise self._failed(_category(reply), reply.status)
        return text

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _headers(self) -> dict[str, str]:
        key = self._settings.api_key
        return _HEADERS if key is None else {**_HEADERS, "Authorization": f"Bearer {key.reveal()}"}

    async def _asked(self, body: bytes) -> Reply:
        return await self._client.post(
            self._url,
            body,
            headers=self._headers(),
            seconds=self._settings.timeout_seconds,
            most_bytes=MOST_BYTES,
        )

    def _failed(self, category: str, status: int | None = None) -> SmallModelFailed:
        error = SmallModelFailed(category, status)
        self._tell("small_model_failed", {"category": error.category, "status": error.status}, loudly=True)
        return error


def _category(reply: Reply) -> str:
    if reply.failure is not None:
        return reply.failure
    return "malformed" if reply.is_success else _REFUSALS.get(reply.status or 0, "http_error")


def _body(model: str, prompt: str, max_tokens: int) -> bytes:
    asked = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens}
    return json.dumps(asked, ensure_ascii=False).encode("utf-8", errors="replace")


def _text(body: bytes) -> str | None:
    """Return the text of an answer, or `None` for anything else."""
    try:
        answer: Any = loads(body)
        text = answer["choices"][0]["message"]["content"]
    except (InvalidJson, LookupError, TypeError):
        return None
    return text if isinstance(text, str) else None
