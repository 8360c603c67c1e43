"""An OpenAI-compatible server on the loopback interface that does what a test tells it, misbehaviour included.

    async with serve(whole("Hello"), streamed("Hel", "lo"), status(429, headers={"Retry-After": "1"})) as server:
        ... server.base_url ...
    server.requests[0].json["messages"]

Each request takes the next answer of the script. A connection serves one request after another until an answer ends
it. `server.gone` is set as soon as a client has left before its answer was complete.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal

import attrs

MODEL = "test-model"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}

End = Literal["complete", "cut", "hang", "drip", "reset"]


@attrs.frozen(kw_only=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@attrs.frozen(kw_only=True)
class Reply:
    """What a client gets.

    Attributes:
        parts: the pieces of the body, each sent on its own.
        end: `complete`; `cut`, the connection is closed before the body is complete; `reset`, the same without a
            word of HTTP when there are no parts; `hang`, nothing more until the client leaves; `drip`, the last part
            again and again until the client leaves.
        length: a Content-Length to claim in place of chunks.
    """

    code: int = 200
    headers: Mapping[str, str] = {}
    parts: tuple[bytes, ...] = ()
    end: End = "complete"
    length: int | None = None


@attrs.define(kw_only=True)
class Server:
    """The running server and what it has seen."""

    base_url: str
    script: list[Reply]
    requests: list[Request] = attrs.field(factory=list)
    connections: int = 0
    gone: asyncio.Event = attrs.field(factory=asyncio.Event)
    arrived: asyncio.Event = attrs.field(factory=asyncio.Event)


def call(name: str, arguments: str, *, call_id: str = "call-1") -> dict[str, Any]:
    """Return a tool call as it stands in a whole answer."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(text: str | None = "", *, calls: Iterable[Mapping[str, Any]] = (), **more: Any) -> dict[str, Any]:
    """Return the body of a whole answer."""
    message = {"role": "assistant", "content": text} | ({"tool_calls": [*calls]} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
    return head | {"choices": [choice], "usage": USAGE} | more


def chunk(delta: Mapping[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk of a streamed answer; without `delta` and `finish` it has no choices."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}] if delta or finish else []
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return head | {"choices": choices} | more


def event(data: Mapping[str, Any] | str) -> bytes:
    """Return a server-sent event."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def whole(text: str | None = "", *, calls: Iterable[Mapping[str, Any]] = (), **more: Any) -> Reply:
    """Return a whole answer."""
    return body(completion(text, calls=calls, **more))


def body(value: Any, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return any JSON value as the answer."""
    return Reply(
        code=code, headers={"Content-Type": "application/json"} | (headers or {}), parts=(json.dumps(value).encode(),)
    )


def status(code: int, message: str = "", *, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error as these servers word it."""
    return body({"error": {"message": message, "type": "test", "code": None}}, code=code, headers=headers)


def events(*parts: bytes, end: End = "complete") -> Reply:
    """Return an event stream of exactly these parts."""
    return Reply(headers={"Content-Type": "text/event-stream; charset=utf-8"}, parts=parts, end=end)


def streamed(*texts: str, calls: Iterable[Mapping[str, Any]] = (), end: End = "complete") -> Reply:
    """Return a well-behaved streamed answer; each tool call comes in two fragments."""
    parts = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    for index, each in enumerate(calls):
        name, arguments = each["function"]["name"], each["function"]["arguments"]
        first = {"index": index, "id": each["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        parts.append(chunk({"tool_calls": [first]}))
        parts.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    parts += [chunk(finish="tool_calls" if calls else "stop"), chunk(usage=USAGE)]
    return events(*map(event, parts), event("[DONE]"), end=end)


@contextlib.asynccontextmanager
async def serve(*script: Reply) -> AsyncIterator[Server]:
    """Run a server that gives these answers, in order, and then only errors."""
    state = Server(base_url="", script=[*script])
    open_now: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now[asyncio.current_task()] = writer
        state.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await _converse(state, reader, writer)
        finally:
            del open_now[asyncio.current_task()]
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    state.base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield state
    finally:
        listening.close()
        # Not cancelled: asyncio logs cancelled connections as errors. To the one who serves it, the client has left.
        still = [*open_now]
        for writer in open_now.values():
            writer.transport.abort()
        await asyncio.gather(*filter(None, still))


async def _converse(state: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    keep = True
    while keep:
        state.requests.append(await _read(reader))
        state.arrived.set()
        reply = state.script.pop(0) if state.script else status(500, "the script has ended")
        keep = await _send(state, reply, reader, writer)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method=method, path=path, headers=headers, body=content)


async def _send(state: Server, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send `reply`; return whether the connection can take another request."""
    if reply.end == "reset" and not reply.parts:
        return False
    framing = {"Transfer-Encoding": "chunked"} if reply.length is None else {"Content-Length": str(reply.length)}
    lines = [f"HTTP/1.1 {reply.code} Test", *(f"{name}: {value}" for name, value in (reply.headers | framing).items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    try:
        for part in reply.parts:
            await _send_part(writer, reply, part)
        return await _finish(state, reply, reader, writer)
    except ConnectionError:
        state.gone.set()
        raise


async def _send_part(writer: asyncio.StreamWriter, reply: Reply, part: bytes) -> None:
    framed = part if reply.length is not None else b"%x\r\n%s\r\n" % (len(part), part)
    writer.write(framed if part else b"")
    await writer.drain()


async def _finish(state: Server, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    if reply.end == "complete":
        writer.write(b"0\r\n\r\n" if reply.length is None else b"")
        await writer.drain()
        return True
    leaving = asyncio.create_task(reader.read(1))
    try:
        while reply.end == "drip" and not leaving.done():
            await _send_part(writer, reply, reply.parts[-1])
            await asyncio.wait([leaving], timeout=0.005)
        if reply.end in {"hang", "drip"}:
            await leaving
            state.gone.set()
    finally:
        leaving.cancel()
    return False
