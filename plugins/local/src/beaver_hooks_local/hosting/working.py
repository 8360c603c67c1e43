"""Threads of the plugin's own, for the engine's calls, which block.

The event loop's own threads belong to everybody in the process: calls that hang there would keep others from theirs,
and the process from ending. These are few, they are daemons, they end when nothing came for a while, and what waits for
them is bounded.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from beaver_hooks_local.errors import LocalError

T = TypeVar("T")

THREADS = 4
WAITING = 256
IDLE_SECONDS = 30.0


class Overloaded(LocalError):
    """So many calls wait for the local memory that this one was not taken, or it closed before its turn came."""


class Workers:
    """Does calls in threads.

    Args:
        name: of the threads.
        threads: how many calls are done at once.
        waiting: how many may wait.
    """

    def __init__(self, name: str, *, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._name = name
        self._most, self._room = threads, waiting
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], asyncio.Future[Any]]] = deque()
        self._running = self._idle = 0
        self._shut = self._ending = False
        self._last: Callable[[], object] | None = None
        self._gone = threading.Event()
        self._awaited: list[asyncio.Future[None]] = []

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Return what will hold the result of `work`, or its exception, in the running loop.

        Raises:
            Overloaded: too many calls wait, or it was shut.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._shut or len(self._waiting) >= self._room:
                raise _refusal()
            self._waiting.append((partial(_do, work, future), future))
            self._begin()
        return future

    def shut(self, last: Callable[[], object] = bool) -> None:
        """Take no more calls, refuse those that wait, and do `last` when the running ones are done. Never waits."""
        with self._changed:
            if self._shut:
                return
            self._shut, self._last = True, last
            refused = [future for _, future in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
            if not self._running:
                self._start()
        for future in refused:
            _settle(future, partial(future.set_exception, _refusal()))

    async def ended(self, seconds: float) -> bool:
        """Wait until the last thread is gone, `seconds` at most; return whether it is."""
        gone = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._gone.is_set():
                return True
            self._awaited.append(gone)
        await asyncio.wait([gone], timeout=seconds)
        return self._gone.is_set()

    def _begin(self) -> None:
        if self._idle >= len(self._waiting):
            self._changed.notify()
        elif self._running < self._most:
            self._start()

    def _start(self) -> None:
        self._running += 1
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            if not self._waiting and not self._shut:
                self._idle += 1
                self._changed.wait(IDLE_SECONDS)
                self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()[0]
            if self._shut and self._running == 1 and not self._ending:
                self._ending = True
                return self._end
            # Under the same lock: whoever comes now starts another thread.
            self._running -= 1
            return None

    def _end(self) -> None:
        try:
            if self._last is not None:
                self._last()
        finally:
            with self._changed:
                self._gone.set()
                awaited, self._awaited = self._awaited, []
            for future in awaited:
                _settle(future, partial(future.set_result, None))


def _refusal() -> Overloaded:
    return Overloaded("The local memory has too many waiting calls; try again later.")


def _do(work: Callable[[], T], future: "asyncio.Future[T]") -> None:
    # Nobody waits for it any more, so that it need not be begun.
    if future.cancelled():
        return
    try:
        settle: Callable[[], None] = partial(future.set_result, work())
    except Exception as error:  # noqa: BLE001 - whoever waits gets it
        settle = partial(future.set_exception, error)
    _settle(future, settle)


def _settle(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
        future.get_loop().call_soon_threadsafe(_unless_done, future, settle)


def _unless_done(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
