"""The resident process: one host for all events of Claude Code in one place, as long as events arrive.

The client starts it with `python -P -m`. It listens on a Unix socket that only this user can reach, answers each
event, and ends after a while without events or on SIGTERM; it then commits the answers that wait. A second one ends
at once.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.coding_agents.claude_code.client import (
    MAGIC,
    MOST_ANSWER,
    MOST_REQUEST,
    STATUS,
    digests,
    framed,
    socket_path,
)
from beaver_hooks.coding_agents.claude_code.events import ClaudeCodeTurns
from beaver_hooks.coding_agents.claude_code.folder_trust import check_folder, keep_folder, merely_found
from beaver_hooks.coding_agents.claude_code.memory import ResidentMemory
from beaver_hooks.coding_agents.claude_code.resident_socket import UNSUPPORTED, SocketPath, is_supported, same_user
from beaver_hooks.config import load_config
from beaver_hooks.config.locations import FILE, VARIABLE, find_folder
from beaver_hooks.config.parser import read_json
from beaver_hooks.config.trust import recorded_fingerprint
from beaver_hooks.host import Host
from beaver_hooks.log import LOGGER_NAME, make_log
from beaver_hostspecs import ConfigurationError, Trust
from beaver_hostspecs.naming import type_name

MOST_LOG = 1_000_000
IDLE = 15 * 60.0
UNASKED = 30.0
"""Seconds after which a resident without a first request ends: the client that started it has found another one."""

READING = 10.0
"""Seconds that a client may take to send its request."""

USUAL = "_API_KEY"
"""The suffix of the variables that plugins read if the configuration names none."""


@attrs.frozen(kw_only=True)
class Options:
    """The options of the resident."""

    folder: Path
    config: Path | None
    trust: Trust
    user: str | None
    budget: int


def options(arguments: Sequence[str]) -> Options:
    """Return the options that the arguments give."""
    parser = argparse.ArgumentParser(prog="beaver-claude-code-resident", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--config", type=Path)
    parser.add_argument("--trust", type=Trust, choices=list(Trust), default=Trust.FULL)
    parser.add_argument("--user")
    parser.add_argument("--budget", type=int, default=2000)
    return Options(**vars(parser.parse_args(arguments)))


class Resident:
    """Answers requests until none has arrived for `idle` seconds, or `end` is called.

    Args:
        memory: answers the events.
        idle: the seconds.
        differs: whether the digests of a session's environment differ in a relevant variable.
    """

    def __init__(
        self, memory: ResidentMemory, *, idle: float, differs: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        self._memory = memory
        self._idle = idle
        self._differs = differs
        self._installed = _installed()
        self._over = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Let `serve` return."""
        self._over.set()

    async def serve(self, place: SocketPath) -> None:
        """Answer each client; at the end leave the place, and close the memory after the last answer."""
        self._rest(min(self._idle, UNASKED))
        server = await asyncio.start_unix_server(partial(self._connected, place), sock=place.listening)
        await self._over.wait()
        # From here on the next client starts another resident.
        server.close()
        place.leave()
        if self._running:
            await asyncio.wait(self._running)
        await self._memory.close()

    def _rest(self, seconds: float) -> None:
        """Begin to wait for the next request."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._running:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    async def _connected(self, place: SocketPath, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._running.add(task)
        try:
            if same_user(writer.get_extra_info("socket")) and (request := await _read(reader)) is not None:
                await self._reply(place, request, writer)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            # The client has left, or another program had connected.
            make_log().debug("claude_code_request_failed", error=type_name(error))
        finally:
            writer.close()
            self._running.discard(task)
            self._rest(self._idle)

    async def _reply(self, place: SocketPath, request: bytes, writer: asyncio.StreamWriter) -> None:
        said, _, environment = request.partition(b"\0")
        try:
            event = json.loads(said)
        except (ValueError, RecursionError):
            event = None
        starts = isinstance(event, dict) and event.get("hook_event_name") == "SessionStart"
        if starts and self._memory.resting and (_installed() != self._installed or self._differs(environment)):
            # The version or a credential has changed. Without an answer the client starts a resident that has the new
            # one.
            self.end()
            return
        answer = framed(await self._answer(event))
        place.be_in_time()
        writer.write(answer)
        try:
            await writer.drain()
        except ConnectionError:
            self._memory.unheard(event)
            raise

    async def _answer(self, event: object) -> bytes:
        if isinstance(event, dict) and event.get("hook_event_name") == STATUS:
            output = {"pid": os.getpid(), **self._memory.status()}
        else:
            output = await self._memory.handle(event)
        # Half of a surrogate pair, which JSON can escape and UTF-8 cannot write, becomes what JSON escapes it to.
        text = json.dumps(output, ensure_ascii=False).encode("utf-8", "backslashreplace")
        answer = text + b"\n" if output else b""
        if len(answer) > MOST_ANSWER - len(MAGIC) * 2:
            make_log().warning("claude_code_answer_too_large", size=len(answer))
            return b""
        return answer


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    """Return the body of a request, or `None` if the request is malformed."""
    async with asyncio.timeout(READING):
        head = await reader.readuntil(b"\n")
        digits = head.removeprefix(MAGIC).strip()
        if not head.startswith(MAGIC) or not digits.isdigit() or int(digits) > MOST_REQUEST:
            return None
        return await reader.readexactly(int(digits))


def _installed() -> object:
    """Return a value that changes when another version replaces this one."""
    return _state(Path(__file__))


def stamp(config: Path | None, folder: Path = Path()) -> tuple[object, ...]:
    """Return a value that changes with the configuration, its confirmation, or the folder."""
    path = file_of(config, folder)
    return _state(path), _confirmed(path), _state(folder)[:1]


def file_of(config: Path | None, folder: Path) -> Path:
    """Return the path of the configuration, which may not exist."""
    named = config or os.environ.get(VARIABLE)
    return folder / named if named else find_folder(os.environ, folder.absolute()) / FILE


def _confirmed(path: Path) -> str | None:
    # Not the whole record: confirmations of other configurations do not matter here.
    with contextlib.suppress(ConfigurationError, OSError):
        return recorded_fingerprint(path, os.environ)
    return None


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


async def run(given: Options, place: SocketPath) -> None:
    """Be the resident at a place."""

    async def open_turns() -> ClaudeCodeTurns:
        # The user may have removed the folder, and put another one there.
        os.chdir(given.folder)
        # The resident cannot ask the user, so a folder that was merely found counts only if it was confirmed.
        loaded = load_config(given.config)
        if merely_found(loaded, os.environ, named=given.config is not None):
            check_folder(loaded.state_folder, os.environ)
            keep_folder(loaded.state_folder, os.environ)
        host = Host(
            entry_points=None,
            config=loaded.config,
            state_folder=loaded.state_folder,
            person_folder=loaded.person_folder,
        )
        await host.open()
        return ClaudeCodeTurns(host=host, trust=given.trust, user=given.user, budget=given.budget)

    memory = ResidentMemory(open_turns, partial(stamp, given.config, given.folder))
    config = file_of(given.config, given.folder)
    resident = Resident(memory, idle=IDLE, differs=lambda said: differs(said, config))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, resident.end)
    await resident.serve(place)


def main(arguments: Sequence[str]) -> int:
    """Be the resident, unless there is one already."""
    given = options(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger(LOGGER_NAME).setLevel(os.environ.get("BEAVER_LOG_LEVEL", "warning").strip().upper())
    if not is_supported():
        sys.stderr.write(f"Error: {UNSUPPORTED}.\n")
        return 1
    os.umask(0o077)
    place = SocketPath.take(Path(socket_path(arguments, os.environ)))
    if place is None:
        return 0
    _begin_log()
    try:
        asyncio.run(run(given, place))
    finally:
        with contextlib.suppress(OSError):
            place.leave()
    return 0


def _begin_log() -> None:
    """Truncate the log file behind stderr if it has become large."""
    with contextlib.suppress(OSError, ValueError):
        found = os.fstat(sys.stderr.fileno())
        if stat.S_ISREG(found.st_mode) and found.st_size > MOST_LOG:
            os.ftruncate(sys.stderr.fileno(), 0)


def differs(given: bytes, config: Path) -> bool:
    """Whether a relevant variable differs from this process's.

    Args:
        given: the digests of the session's environment, as the client makes them; empty if the client sent none.
        config: the configuration; a variable is relevant if one of its texts is the variable's name.
    """
    theirs, ours = _parsed(given), _parsed(digests(os.environ))
    named = set(_texts(config))
    changed = {name for name, _ in theirs.items() ^ ours.items()} if given else set()
    return any(name in named or name.endswith(USUAL) for name in changed)


def _parsed(lines: bytes) -> dict[str, str]:
    pairs = (each.partition(" ") for each in os.fsdecode(lines).split("\n"))
    return {name: digest for digest, _, name in pairs}


def _texts(config: Path) -> Iterator[str]:
    try:
        yield from _within(read_json(config))
    except (ConfigurationError, OSError):
        return  # an invalid configuration names no variable


def _within(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _within(each)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
