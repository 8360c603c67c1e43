"""The bearer token of the HTTP server: from the environment, else from a file of its own in the state folder.

A repository may contain a state folder, and its author would know a token in it. So only a file that was made on this
machine counts.
"""

import hmac
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.paths import printable
from beaver_hooks.config.trust import record_made, was_made_here
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import ConfigurationError, Secret
from beaver_toolkit.files import create_once, open_regular, sweep

VARIABLE = "BEAVER_MCP_TOKEN"
FILE = "mcp.token"
_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")
"""The form of a bearer token; an attacker could guess a shorter one."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

BODY = b"This server wants its token: `Authorization: Bearer TOKEN`.\n"
SCHEME = b"bearer"
STREAM = b"text/event-stream"


@attrs.frozen(kw_only=True)
class Token:
    """The token, and its source in words."""

    secret: Secret
    source: str


def find_token(state_folder: Path, environment: Mapping[str, str]) -> Token:
    """Return the token; make one unless it exists.

    Raises:
        ConfigurationError: it cannot be read or made, has the wrong form, or was not made on this machine.
        AuditUnavailable: the state folder cannot be used.
    """
    if given := environment.get(VARIABLE, "").strip():
        return Token(secret=_checked(given, VARIABLE), source=f"the one in {VARIABLE}")
    path = make_state_folder(state_folder) / FILE
    where = printable(str(path))
    try:
        sweep(path)
        made = create_once(path, f"{secrets.token_urlsafe(_BYTES)}\n".encode("ascii"))
        found = _read(path)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigurationError(
            where, f"cannot be used ({why}); remove it, and the next start writes a new one"
        ) from None
    secret = _checked(found, where)
    if made:
        record_made(path, found.encode("ascii"), environment)
    elif not was_made_here(path, found.encode("ascii"), environment):
        raise ConfigurationError(
            where,
            "was not written on this machine, so other people may know it; remove it, and the next start writes a new"
            " one",
        )
    return Token(secret=secret, source=f"in {where}")


def _read(path: Path) -> str:
    """Return the content of the file; tighten a mode that lets others read it."""
    with open_regular(path, follow_links=False) as file:
        if os.fstat(file.fileno()).st_mode & 0o077 and os.name != "nt":
            os.fchmod(file.fileno(), 0o600)
        return file.read(1024).decode("ascii").strip()


def _checked(token: str, where: str) -> Secret:
    if not _TOKEN.fullmatch(token):
        raise ConfigurationError(where, "a token has 16 to 512 letters, digits and `-._~+/=`")
    return Secret(token)


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
