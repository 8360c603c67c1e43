"""Token check of the HTTP server. An ASGI application around another one."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import attrs

from beaver_hostspecs import Secret

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

BODY = b"This server wants its token: `Authorization: Bearer TOKEN`.\n"
SCHEME = b"bearer"
STREAM = b"text/event-stream"


@attrs.frozen(kw_only=True)
class Gate:
    """Lets requests with the token through, and answers 401 to all others.

    Attributes:
        app: the inner application.
        token: the token that a request must have.
        entering: called before each request with the token.
    """

    app: App
    token: Secret
    entering: Callable[[], object]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request, or the application's life."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and not self._may_enter(scope):
            await _refuse(send)
        elif scope["type"] == "http":
            self.entering()
            await self._pass(scope, receive, send)

    async def _pass(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request; a stream that the server's end cuts short is ended properly."""
        streams = False

        async def watched(message: Message) -> None:
            nonlocal streams
            if message["type"] == "http.response.start":
                streams = any(value.startswith(STREAM) for name, value in message["headers"] if name == b"content-type")
            elif not message.get("more_body"):
                streams = False
            await send(message)

        await self.app(scope, receive, watched)
        if streams:
            await send({"type": "http.response.body", "body": b""})

    def _may_enter(self, scope: Message) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(b" ")
        # In constant time, so that the duration reveals nothing about the token.
        return scheme.lower() == SCHEME and hmac.compare_digest(token.strip(), self.token.reveal().encode("ascii"))


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(BODY)).encode("ascii")),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
