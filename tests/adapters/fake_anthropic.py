"""The part of the Anthropic API that Claude Code needs, on the loopback interface, saying what a test tells it.

    async with serve(said("Hello."), called("Bash", {"command": "true"}), said("Done.")) as fake:
        ... fake.base_url ...
    fake.texts(0)

Each turn of the model takes the next answer of the script; when there is none left, the model says `OK.`. Or the test
gives a function that answers each request.
"""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

ERROR = {"type": "error", "error": {"type": "invalid_request_error", "message": "refused by the test"}}


@attrs.frozen(kw_only=True)
class Reply:
    """What the model says, or the status with which the API refuses.

    Attributes:
        hang: nothing comes, or, where there is content, nothing more after its first piece.
    """

    content: tuple[Mapping[str, Any], ...] = ()
    status: int = 200
    hang: bool = False


Answer = Callable[[dict[str, Any]], Awaitable[Reply]]


@attrs.define(kw_only=True)
class Fake:
    """The running server, and what it was asked: the requests that have tools are the turns of the model."""

    script: list[Reply]
    answer: Answer | None = None
    base_url: str = ""
    requests: list[dict[str, Any]] = attrs.field(factory=list)
    hanging: asyncio.Event = attrs.field(factory=asyncio.Event)
    over: asyncio.Event = attrs.field(factory=asyncio.Event)
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = attrs.field(factory=dict)

    def texts(self, index: int) -> list[tuple[str, str]]:
        """Return the role and the text of everything in the messages of a request."""
        return texts(self.requests[index])

    def all_text(self, index: int) -> str:
        """Return all the text of the messages of a request."""
        return "\n".join(text for _, text in self.texts(index))

    def system(self, index: int) -> str:
        """Return the system prompt of a request."""
        return system(self.requests[index])


def texts(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the role and the text of everything in the messages of a request."""
    return [
        (message["role"], part["text"])
        for message in request["messages"]
        for part in _parts(message["content"])
        if part.get("type") == "text"
    ]


def system(request: Mapping[str, Any]) -> str:
    """Return the system prompt of a request."""
    return "\n".join(part["text"] for part in _parts(request.get("system", "")))


def said(text: str) -> Reply:
    """Return an answer of the model."""
    return Reply(content=({"type": "text", "text": text},))


def called(name: str, arguments: Mapping[str, Any], *, call_id: str = "toolu_1") -> Reply:
    """Return a tool call of the model."""
    return Reply(content=({"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)},))


def refused(status: int = 400) -> Reply:
    """Return an error of the API."""
    return Reply(status=status)


def hanging(text: str = "") -> Reply:
    """Return an answer that never comes, or that stops after its first piece."""
    return Reply(content=({"type": "text", "text": text},) if text else (), hang=True)


def cli() -> Path | None:
    """Return the `claude` that is bundled with claude-agent-sdk, if it runs here."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.is_file() and os.access(path, os.X_OK) else None


def environment(folder: Path, base_url: str) -> dict[str, str]:
    """Return the environment of a Claude Code that knows nothing but `folder` and the fake."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "XDG_STATE_HOME": str(folder / "state"),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


@contextlib.asynccontextmanager
async def serve(*script: Reply, answer: Answer | None = None) -> AsyncIterator[Fake]:
    """Give a running server."""
    fake = Fake(script=[*script], answer=answer)
    server = await asyncio.start_server(lambda reader, writer: _connected(fake, reader, writer), "127.0.0.1", 0)
    fake.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        fake.over.set()
        for writer in fake.connections.values():
            writer.close()
        await asyncio.gather(*fake.connections)


async def _connected(fake: Fake, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    task = asyncio.current_task()
    assert task is not None
    fake.connections[task] = writer
    try:
        while (request := await _request(reader)) is not None:
            path, body = request
            await _respond(fake, path, body, writer)
    except (OSError, EOFError):
        pass
    finally:
        writer.close()
        del fake.connections[task]


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
    return line.split(" ")[1], await reader.readexactly(int(headers.get("content-length", 0)))


async def _respond(fake: Fake, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    asked = json.loads(body) if body else {}
    if not path.startswith("/v1/messages") or "count_tokens" in path:
        await _send(writer, 200, json.dumps({"input_tokens": 1}).encode())
        return
    reply = said("OK.")
    if asked.get("tools"):
        fake.requests.append(asked)
        if fake.answer is not None:
            reply = await fake.answer(asked)
        elif fake.script:
            reply = fake.script.pop(0)
    if reply.hang:
        await _hang(fake, reply, writer)
    elif reply.status != 200:
        await _send(writer, reply.status, json.dumps(ERROR).encode())
    elif asked.get("stream"):
        await _send(writer, 200, b"".join(_events(reply)), kind="text/event-stream")
    else:
        await _send(writer, 200, json.dumps(_message(list(reply.content), _why(reply))).encode())


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, *, kind: str = "application/json") -> None:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _hang(fake: Fake, reply: Reply, writer: asyncio.StreamWriter) -> None:
    if reply.content:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n" + b"".join(_events(reply)[:3]))
        await writer.drain()
    fake.hanging.set()
    await fake.over.wait()


def _message(content: list[Mapping[str, Any]], why: str | None) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"}
    return {**head, "content": content, "stop_reason": why, "stop_sequence": None, "usage": usage}


def _why(reply: Reply) -> str:
    return "tool_use" if any(part["type"] == "tool_use" for part in reply.content) else "end_turn"


def _events(reply: Reply) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": _message([], None)}]
    for index, part in enumerate(reply.content):
        if part["type"] == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": each} for each in re.findall(r"\S*\s*", part["text"]) if each]
        else:
            start = {**part, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(part["input"])}]
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": _why(reply), "stop_sequence": None}
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
