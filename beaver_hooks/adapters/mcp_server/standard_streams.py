"""Standard input and output, reserved for the protocol.

While they are lent, descriptor 0 leads nowhere and descriptor 1 to stderr: the output of a plugin or its child does not
get between two messages. They are read and written in threads that the process does not join: a client that neither
writes nor reads does not keep the process from ending.
"""

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Self

import attrs

from beaver_hooks.adapters.mcp_server.early_answers import EarlyAnswers
from beaver_hooks.adapters.mcp_server.recorded_answers import RecordedAnswers

if TYPE_CHECKING:
    from beaver_hooks.log import Log

STDIN, STDOUT, STDERR = 0, 1, 2
CHUNK = 64 * 1024
MOST_WAITING = 64
"""Lines that are read ahead."""

LONGEST_LINE = 16 * 1024 * 1024
"""The most bytes of one message; a longer one ends the connection."""

ENCODING = "utf-8"


@contextlib.contextmanager
def lent() -> Iterator[tuple[int, int]]:
    """Yield the descriptors of the wire, to read and to write; restore the streams afterwards."""
    sys.stdout.flush()
    read, write = os.dup(STDIN), os.dup(STDOUT)
    try:
        _lead(STDIN, os.open(os.devnull, os.O_RDONLY))
        _lead(STDOUT, os.dup(STDERR))
        yield read, write
    finally:
        # Buffered output of this time still goes to stderr.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(read, STDIN)
        os.dup2(write, STDOUT)
        # The two are left open: a thread may be reading or writing still, and must not find another file there.


def _lead(descriptor: int, target: int) -> None:
    os.dup2(target, descriptor)
    os.close(target)


@attrs.frozen
class Wire:
    """The two directions of a connection over standard input and output."""

    lines: "LinesIn"
    out: "TextOut | EarlyAnswers"


@contextlib.asynccontextmanager
async def wire(record: RecordedAnswers | None = None) -> AsyncIterator[Wire]:
    """Reserve standard input and output for the protocol. Enter it before the host is opened: plugins may print.

    Args:
        record: answers the first requests, until its `retire` is called.
    """
    with lent() as (read, write):
        out = TextOut(write)
        if record is None:
            lines = LinesIn(read)
            this = Wire(lines, out)
        else:
            early = EarlyAnswers(out, record)
            lines = LinesIn(read, early.arrived)
            this = Wire(lines, early)
        out.gone = lines.end
        yield this


class LinesIn:
    """The lines that arrive on a descriptor, for one event loop.

    Args:
        descriptor: the descriptor to read.
        arrived: called first with each line, in the thread that reads.
    """

    def __init__(self, descriptor: int, arrived: Callable[[str], object] | None = None) -> None:
        self._descriptor = descriptor
        self._arrived = arrived or _ignore
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(MOST_WAITING)
        threading.Thread(target=self._read, name="beaver-mcp-stdin", daemon=True).start()

    def end(self) -> None:
        """End the lines here, before any further input."""
        self._lines.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        self._room.release()
        return line

    def _read(self) -> None:
        """Read to the end; in the thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task reads any more
            for line in _lines_of(self._descriptor):
                self._room.acquire()
                self._arrived(line)
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self.end)


class TextOut:
    """Writes text to a descriptor, for one event loop.

    Args:
        descriptor: the descriptor to write.
        gone: called in the loop once the client reads no more; later output is dropped.
    """

    def __init__(self, descriptor: int, gone: Callable[[], object] | None = None) -> None:
        self._descriptor = descriptor
        self.gone = gone or _ignore
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[tuple[bytes, asyncio.Future[None] | None]] = queue.SimpleQueue()
        self._texts: list[str] = []
        threading.Thread(target=self._write, name="beaver-mcp-stdout", daemon=True).start()

    def send(self, text: str) -> None:
        """Send text without waiting for it, from any thread."""
        self._work.put((text.encode(ENCODING, "replace"), None))

    async def write(self, text: str) -> None:
        """Take text; `flush` sends it."""
        self._texts.append(text)

    async def flush(self) -> None:
        """Return when the taken text is written, or the client reads no more."""
        data = "".join(self._texts).encode(ENCODING, "replace")
        self._texts.clear()
        written: asyncio.Future[None] = self._loop.create_future()
        self._work.put((data, written))
        await written

    def _write(self) -> None:
        """Write the queued texts; in the thread."""
        broken = False
        while True:
            data, written = self._work.get()
            if not broken:
                broken = not _write_all(self._descriptor, data)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                if broken:
                    self._loop.call_soon_threadsafe(self.gone)
                self._loop.call_soon_threadsafe(_settle, written)


def _ignore(*_: object) -> None:
    """Do nothing."""


def _settle(written: "asyncio.Future[None] | None") -> None:
    if written is not None and not written.done():
        written.set_result(None)


def _write_all(descriptor: int, data: bytes) -> bool:
    """Write all data; return whether the client still reads."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        _log().info("mcp_client_gone", error=type(error).__name__)
        return False
    return True


def _lines_of(descriptor: int) -> Iterator[str]:
    """Yield the lines that are not blank, without their ends."""
    rest = b""
    while chunk := _read_some(descriptor):
        *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
        yield from (line.decode(ENCODING, "replace") for line in lines if line.strip())
        if len(rest) > LONGEST_LINE:
            _log().error("mcp_message_too_long", limit=LONGEST_LINE)
            return
    if rest.strip():
        yield rest.decode(ENCODING, "replace")


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        _log().error("mcp_stdin_unreadable", error=type(error).__name__)
        return b""


def _log() -> "Log":
    # Late: importing it takes as long as a whole first answer.
    from beaver_hooks.log import make_log  # noqa: PLC0415

    return make_log()
