"""`SyncHost`: the host for callers without an event loop."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import attrs

from beaver_hooks.host import Host, TurnFields
from beaver_hooks.record.health import Health
from beaver_hooks.record.receipts import Receipt
from beaver_hooks.turns.composing import PluginHint, Recall, ReferenceMessage
from beaver_hooks.turns.open_turn import OpenTurn
from beaver_hostspecs import Answer, DropReason, ForkedHost, HostError, HostNotOpen, Turn, WrongLoop

T = TypeVar("T")


class SyncHost:
    """A `Host` on an event loop in a thread of its own.

    Enter it with `with`; leaving closes the host and its thread. It may be used from several threads. It takes the
    arguments of `Host`, or a host that is not open yet: `SyncHost(Host.from_config())`.
    """

    def __init__(self, host: Host | Mapping[str, object] | None = None, **options: Any) -> None:
        self._host = host if isinstance(host, Host) else Host(host or {}, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Start the thread and open the host in it."""
        if self._loop is not None:
            self._check_process()
        with self._lock:
            if self._loop is not None:
                raise HostNotOpen("this host is open already; one host is opened once at a time")
            self._loop = asyncio.new_event_loop()
            self._process = os.getpid()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="beaver-hooks", daemon=True)
            self._thread.start()
        try:
            self.call(self._host.open)
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """Close the host, then its thread. Others that still wait for it get a `CancelledError`."""
        self._running()
        try:
            self.call(self._host.close)
        finally:
            self._end()

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function of the host in its loop, in the caller's context; return what it returns.

        Interrupting the caller cancels it.
        """
        self._running()
        future: Future[T] | None = None
        try:
            # Under the lock, so that whoever closes the loop sees this call, or this call sees that it was closed.
            with self._lock:
                loop = self._running()
                future = asyncio.run_coroutine_threadsafe(function(*arguments, **keywords), loop)
            return future.result()
        except BaseException:
            if future is not None:
                future.cancel()
            raise

    def open_turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> "SyncTurn":
        """Open a turn, as `Host.open_turn` does."""
        opened = self.call(self._host.open_turn, prompt, session=session, supersedes=supersedes, **fields)
        return SyncTurn(opened=opened, host=self)

    @contextlib.contextmanager
    def turn(
        self, prompt: str, *, session: str, supersedes: str | None = None, **fields: Unpack[TurnFields]
    ) -> Iterator["SyncTurn"]:
        """Open a turn that cannot be forgotten: it is dropped on any exception, and if nobody has committed it."""
        opened = self.open_turn(prompt, session=session, supersedes=supersedes, **fields)
        try:
            yield opened
        except BaseException as error:
            reason = DropReason.CANCELLED if isinstance(error, GeneratorExit) else DropReason.FAILED
            with contextlib.suppress(HostError):  # a host that was closed has dropped it
                opened.drop(reason)
            raise
        else:
            opened.drop(DropReason.ABANDONED)

    def drain(self, seconds: float | None = None) -> int:
        """Wait until the background work is done, at most `seconds`; return how many calls are left."""
        return self.call(self._host.drain, seconds)

    def register(self, name: str, plugin: object, *, fail_closed: bool = False) -> None:
        """Register, configure and start a plugin."""
        self.call(self._host.register, name, plugin, fail_closed=fail_closed)

    def unregister(self, name: str, *, drain: bool = False) -> None:
        """Take a plugin out, effective at once."""
        self.call(self._host.unregister, name, drain=drain)

    def health(self) -> dict[str, Health]:
        """Return the health of every plugin."""
        return self.call(_as_coroutine, self._host.health)

    def receipt(self, turn_id: str) -> Mapping[str, Any] | None:
        """Return the kept receipt of a closed turn, or `None`."""
        return self.call(self._host.receipt, turn_id)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None:
            raise HostNotOpen("this host is not open; enter it with `with host:` or `host.open()`")
        self._check_process()
        if self._thread.ident == threading.get_ident():
            raise WrongLoop("a SyncHost cannot be used from inside a hook of its own: it would wait for itself")
        return self._loop

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            # The thread was not forked: waiting for it would be waiting for ever.
            raise ForkedHost("this host was opened before a fork and cannot be used in the child; open a new one there")

    def _end(self) -> None:
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        _cancel_all(loop)
        loop.close()


@attrs.define(kw_only=True, eq=False)
class SyncTurn:
    """An open turn of a `SyncHost`."""

    opened: OpenTurn
    _host: SyncHost

    @property
    def turn(self) -> Turn:
        """The turn, as every plugin sees it."""
        return self.opened.turn

    @property
    def id(self) -> str:
        """The turn's id."""
        return self.opened.id

    @property
    def prompt(self) -> str:
        """What the user said."""
        return self.opened.prompt

    @property
    def recall(self) -> Recall:
        """What memory gives the turn."""
        return self.opened.recall

    @property
    def references(self) -> tuple[ReferenceMessage, ...]:
        """One ephemeral message per plugin that recalled something."""
        return self.opened.references

    @property
    def hints(self) -> tuple[PluginHint, ...]:
        """Experience with the host's own tools."""
        return self.opened.hints

    @property
    def receipt(self) -> Receipt:
        """The turn's receipt as it stands now."""
        return self.opened.receipt

    def system_prompt(self, base: str = "") -> str:
        """Return the system prompt: `base`, the plugins' rules, the trusted blocks."""
        return self.opened.system_prompt(base)

    def tool_result(self, **fields: Any) -> bool:
        """Tell the plugins about a tool call, as `OpenTurn.tool_result` does."""
        return self._host.call(self.opened.tool_result, **fields)

    def commit(self, answer: str | Answer, **fields: Any) -> bool:
        """Close the turn with its final answer, as `OpenTurn.commit` does."""
        return self._host.call(self.opened.commit, answer, **fields)

    def drop(self, reason: DropReason | str = DropReason.FAILED) -> bool:
        """Close the turn without an answer."""
        return self._host.call(self.opened.drop, reason)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; a plugin's KeyboardInterrupt reaches its caller, and ends nobody's loop."""
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return loop.run_forever()


async def _as_coroutine(function: Callable[[], T]) -> T:
    return function()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Give what is left on a stopped loop one chance to end; what does not is abandoned with the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=0.1))
    loop.run_until_complete(loop.shutdown_asyncgens())
