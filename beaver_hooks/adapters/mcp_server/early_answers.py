"""Answers the requests that open a connection from the answers of the last run, while the server opens.

Importing the SDK and opening the host take a second or more, and a client that waits for its first answers may go on
without the tools. So the requests in `METHODS` are answered from `RecordedAnswers`, in the thread that reads them. The
SDK gets every line all the same: its own answers to those requests are held back, compared and recorded, and if the
list of tools differs, the client gets `notifications/tools/list_changed`.
"""

import asyncio
import json
from typing import Any, Protocol

import attrs

from beaver_hooks.adapters.mcp_server.recorded_answers import RecordedAnswers

HELLO, LIST = "initialize", "tools/list"
METHODS = (HELLO, "server/discover", LIST)
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

Id = str | int


class Sender(Protocol):
    """The output for messages to the client."""

    def send(self, text: str) -> None:
        """Send text, from any thread."""

    async def write(self, text: str) -> None:
        """Take text; `flush` sends it."""

    async def flush(self) -> None:
        """Return when the taken text is sent."""


@attrs.frozen(kw_only=True)
class Request:
    """A request that opens a connection.

    Attributes:
        id: its id.
        method: its method.
        key: the method and its parameters, as they are recorded.
    """

    id: Id
    method: str
    key: str


@attrs.frozen(kw_only=True)
class Expected:
    """An expected answer of the SDK.

    Attributes:
        request: its request.
        early: the early answer that the client already has, if any.
    """

    request: Request
    early: Any


class EarlyAnswers:
    """Stands between the SDK and the output to the client.

    Args:
        out: the output.
        record: the answers of the last run; it keeps those of this run.
    """

    def __init__(self, out: Sender, record: RecordedAnswers) -> None:
        self._out = out
        self._record = record
        self._expected: dict[Id, Expected] = {}
        self._shakes_hands = False

    def arrived(self, line: str) -> None:
        """Answer a line of the client if the record can, before the SDK gets it; in the thread that reads."""
        request = as_request(line)
        if request is None or request.id in self._expected:
            return
        early = self._record.get(request.key)
        self._shakes_hands |= request.method == HELLO
        self._expected[request.id] = Expected(request=request, early=early)
        if early is not None:
            self._out.send(_line({"jsonrpc": "2.0", "id": request.id, "result": early}))

    async def write(self, text: str) -> None:
        """Take a message of the SDK; hold back an answer that the client already has."""
        expected = self._expected.pop(_answered(text), None) if self._expected else None
        if expected is None:
            await self._out.write(text)
            return
        result = json.loads(text).get("result")
        self._record.keep(expected.request.key, result)
        if expected.early is None:
            await self._out.write(text)
        elif result != expected.early and expected.request.method == LIST and self._shakes_hands:
            await self._out.write(_line(CHANGED))

    async def flush(self) -> None:
        """Return when the taken text is sent, and new answers are recorded."""
        await self._out.flush()
        if self._record.is_news:
            await asyncio.to_thread(self._record.save)


def as_request(line: str) -> Request | None:
    """Return a line as a request that opens a connection, or `None`."""
    if not any(f'"{method}"' in line for method in METHODS):
        return None
    message = _read(line)
    number, method = message.get("id"), message.get("method")
    if method not in METHODS or isinstance(number, bool) or not isinstance(number, Id):
        return None
    return Request(id=number, method=method, key=json.dumps([method, _lasting(message.get("params"))], sort_keys=True))


def _lasting(value: object) -> object:
    """Return parameters without the parts that differ from run to run: the client's values, and its progress token."""
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name != "progressToken"}
    for name, each in kept.items():
        if name == "_meta":
            kept[name] = _lasting(each)
        elif name.rpartition("/")[2] == "clientInfo" and isinstance(each, dict):
            kept[name] = sorted(each)  # an answer depends on the fields that the client sends, not on their values
    return kept


def _answered(text: str) -> Any:
    """Return the id that a message answers, or `None` for one that is no answer."""
    message = _read(text)
    return None if "method" in message else message.get("id")


def _read(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}  # the SDK says so to the client
    return message if isinstance(message, dict) else {}


def _line(message: object) -> str:
    return f"{json.dumps(message)}\n"
