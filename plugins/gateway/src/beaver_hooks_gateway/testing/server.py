"""The fake gateway itself: plain asyncio, HTTP/1.1, one connection after another."""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Self

import attrs

from beaver_hooks_gateway.testing.faults import Fault, Reply, jsonic, reply_for
from beaver_hostspecs import Secret

ANSWERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"add": {"message_count": 2, "status": "accumulated"}, "flush": {"status": "extracted"}}
)
_DRIP = 0.01

SCOPES = frozenset({"current_chat", "resources", "all_user_memory"})
ROLES = frozenset({"user", "assistant"})
MOST_RESULTS = 100
MOST_MESSAGES = 500
LONGEST_ID = 128

Check = Callable[[Any], bool]


@attrs.frozen(kw_only=True)
class Received:
    """One request that the gateway got.

    Attributes:
        operation: `search`, `add` or `flush`; the last part of the requested path.
        path: the requested path, with the address before it in a request to a proxy.
        connection: the number of its connection.
        body: the parsed body; `None` where it is no JSON.
    """

    operation: str
    path: str
    headers: Mapping[str, str]
    connection: int
    raw: bytes = attrs.field(repr=False)
    body: Any = attrs.field(repr=False)


class FakeGateway:
    """A Memory Gateway on the loopback interface. Enter it with `async with`.

    Args:
        user_id: the only user.
        user_key: the user's key.
        results: the results of a search; may be changed at any time.
        prefix: a path that the gateway is under.
        tls: to serve https; a context of its own.
        delay: seconds before an answer to a search.
        keep_alive: whether a connection may serve several requests.
        elsewhere: the target of redirects.

    Attributes:
        received: every request, in order of arrival.
        connections: how many connections there were.
        open: how many there are now.
        most_open: the most connections at once.
        answered: called with the operation just before its answer is sent.
    """

    def __init__(
        self,
        *,
        user_id: str = "gateway_test_user",
        user_key: Secret | None = None,
        results: Iterable[Mapping[str, Any]] = (),
        prefix: str = "",
        tls: ssl.SSLContext | None = None,
        delay: float = 0.0,
        keep_alive: bool = True,
        elsewhere: str = "http://127.0.0.1:9/memories/search",
    ) -> None:
        self.user_id = user_id
        self.user_key = user_key or Secret("uk_of_the_fake_gateway")
        self.results = list(results)
        self.prefix, self.delay, self.keep_alive, self.elsewhere = prefix, delay, keep_alive, elsewhere
        self.received: list[Received] = []
        self.connections = 0
        self.most_open = 0
        self.answered: Callable[[str], object] = lambda _: None
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self.port = 0
        self._tls = tls
        self._faults: dict[str, Fault | Reply] = {}
        self._open: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self._stalling: list[socket.socket] = []

    @property
    def base_url(self) -> str:
        """The address to configure."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{self.prefix}"

    @property
    def open(self) -> int:
        """How many connections there are now."""
        return len(self._open)

    def bodies(self, operation: str) -> list[Any]:
        """Return the bodies of the requests for one operation."""
        return [each.body for each in self.received if each.operation == operation]

    @property
    def operations(self) -> list[str]:
        """The operations asked for, in order."""
        return [each.operation for each in self.received]

    def misbehave(self, operation: str, fault: Fault | Reply) -> None:
        """Answer an operation in this way from now on. For the faults of connections see `break_connections`."""
        self._faults[operation] = fault

    def behave(self) -> None:
        """Answer everything as a gateway should; broken connections stay broken."""
        self._faults.clear()

    def break_connections(self, fault: Fault) -> None:
        """Let every new connection fail in this way, and end the idle ones."""
        if fault is Fault.TLS and self._tls is not None:
            self._tls.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE
        else:
            self._listening.close()
            if fault is Fault.CONNECT_TIMEOUT:
                self._stall()
        for task, writer in self._open.items():
            if task is not asyncio.current_task():
                writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._closing = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.cancel()
        self._listening.close()
        for each in self._stalling:
            each.close()
        # Not cancelled: asyncio logs cancelled connections as errors. For the server, the client has left.
        still = [*self._open]
        for writer in self._open.values():
            writer.transport.abort()
        await asyncio.gather(*filter(None, still))

    @property
    def _listening(self) -> asyncio.Server:
        if self._server is None:
            raise RuntimeError("the fake gateway is not running; enter it with `async with`")
        return self._server

    def _stall(self) -> None:
        """Listen with a queue that is full: the system then neither accepts nor refuses."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(0)
        self._stalling.append(listening)
        for _ in range(4):
            waiting = socket.socket()
            waiting.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(("127.0.0.1", self.port))
            self._stalling.append(waiting)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number, task = self.connections, asyncio.current_task()
        self._open[task] = writer
        self.most_open = max(self.most_open, self.open)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._serve(reader, writer, number):
                    pass
        finally:
            del self._open[task]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        """Serve one request; return whether the connection can take another."""
        request = await _read(reader, number)
        self.received.append(request)
        self.arrived.set()
        reply = await self._reply(request)
        self.answered(request.operation)
        keep = self.keep_alive and request.headers.get("connection", "").lower() != "close"
        return await self._send(reply, reader, writer, keep=keep) and keep

    async def _reply(self, request: Received) -> Reply:
        fault = self._faults.get(request.operation)
        if isinstance(fault, Reply):
            return fault
        if fault is not None:
            return reply_for(fault, request.raw, elsewhere=self.elsewhere)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        if request.operation != "search":
            return jsonic(ANSWERS[request.operation])
        if self.delay:
            # Cut short when the server ends.
            await asyncio.wait([self._closing], timeout=self.delay)
        return jsonic({"results": self.results[: request.body["top_k"]]})

    def _refusal(self, request: Received) -> Reply | None:
        if not request.path.endswith(f"{self.prefix}/memories/{request.operation}"):
            return jsonic({"error": "no such path"}, status=404)
        if request.operation not in {"search", *ANSWERS}:
            return jsonic({"error": "no such operation"}, status=404)
        if request.headers.get("content-type") != "application/json":
            return jsonic({"error": "not JSON"}, status=415)
        if problem := problem_of(request.operation, request.body):
            return jsonic({"error": problem}, status=422)
        given = (request.body["user_id"], request.body["user_key"])
        return None if given == (self.user_id, self.user_key.reveal()) else jsonic({"error": "who?"}, status=401)

    async def _send(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool
    ) -> bool:
        headers = {**reply.headers, "Content-Length": str(reply.length)} | ({} if keep else {"Connection": "close"})
        lines = [f"HTTP/1.1 {reply.status} Fake", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        try:
            if reply.headers_sent:
                writer.write("\r\n".join(lines).encode())
            for part in reply.parts:
                writer.write(part)
                await writer.drain()
            return await self._finish(reply, reader, writer)
        except OSError:
            self.gone.set()
            raise

    async def _finish(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.end == "complete":
            return True
        if reply.end == "reset":
            await writer.drain()
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        if reply.end in {"hang", "drip"}:
            await self._until_gone(reply, reader, writer)
        return False

    async def _until_gone(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        leaving = asyncio.create_task(reader.read(1))
        try:
            while reply.end == "drip" and not leaving.done():
                writer.write([*reply.parts][-1])
                await asyncio.wait([leaving], timeout=_DRIP)
            await leaving
        finally:
            leaving.cancel()
            self.gone.set()


async def _read(reader: asyncio.StreamReader, number: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    _, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    return Received(
        operation=path.rpartition("/")[2], path=path, headers=headers, connection=number, raw=raw, body=body
    )


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _id(value: Any) -> bool:
    return _text(value) and len(value) <= LONGEST_ID


def _chat(value: Any) -> bool:
    return _id(value) and value.startswith("chat:") and value != "chat:"


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _scopes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and set(value) <= SCOPES and len(set(value)) == len(value)


def _messages(value: Any) -> bool:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_MESSAGES:
        return False
    if any(_misfit(message, _MESSAGE) for message in value):
        return False
    times = [message["timestamp"] for message in value]
    return times == sorted(times)


_IDENTITY: Mapping[str, Check] = {"user_id": _id, "user_key": _text, "app_id": _id, "project_id": _id}
_MESSAGE: Mapping[str, Check] = {
    "sender_id": _id,
    "role": lambda value: value in ROLES,
    "timestamp": lambda value: _number(value) and value > 0,
    "content": lambda value: isinstance(value, str) and value.strip() != "",
}
_BODIES: Mapping[str, Mapping[str, Check]] = {
    "search": {
        **_IDENTITY,
        "conversation_id": _id,
        "query": lambda value: isinstance(value, str) and value.strip() != "",
        "scope": _scopes,
        "top_k": lambda value: _number(value) and 1 <= value <= MOST_RESULTS,
    },
    "add": {**_IDENTITY, "session_id": _chat, "messages": _messages},
    "flush": {**_IDENTITY, "session_id": _chat},
}


def problem_of(operation: str, body: object) -> str | None:
    """Return the first faulty field of a body, or another name of its fault, or `None`."""
    return _misfit(body, _BODIES[operation])


def _misfit(value: object, checks: Mapping[str, Check]) -> str | None:
    if not isinstance(value, dict):
        return "not an object"
    if unexpected := sorted(set(value) ^ set(checks)):
        return unexpected[0]
    return next((name for name, check in checks.items() if not check(value[name])), None)
