"""Runs blocking calls in threads of their own, for a part that lives on an event loop.

The loop's own threads are shared by the whole process: a call that hangs there delays other parts, and the end of the
process. These threads are few, they are daemons, they end when they are idle for a while, and the queue is bounded.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

THREADS = 4
WAITING = 256
IDLE_SECONDS = 30.0


class Overloaded(Exception):
    """Too many calls wait, or the workers are shut; the call did not begin."""


class Workers:
    """Runs blocking calls in threads.

    Args:
        name: of the threads.
        threads: how many calls run at once.
        waiting: how many calls may wait.
        idle_seconds: how long a thread waits for the next call before it ends.
    """

    def __init__(
        self, name: str, *, threads: int = THREADS, waiting: int = WAITING, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._name = name
        self._most, self._room, self._idle_seconds = threads, waiting, idle_seconds
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], None], asyncio.Future[Any]]] = deque()
        self._running = self._idle = 0
        self._shut = self._ending = False
        self._last: Callable[[], object] | None = None
        self._gone = threading.Event()
        self._awaited: list[asyncio.Future[None]] = []

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Return a future of the running loop for the result of `work`, or its exception.

        Raises:
            Overloaded: too many calls wait, or the workers are shut.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._shut or len(self._waiting) >= self._room:
                raise _refusal()
            self._waiting.append((partial(_do, work, future), future))
            self._begin()
        return future

    def shut(self, last: Callable[[], object] = bool) -> None:
        """Take no more calls, refuse those that wait, and run `last` after the running ones. Does not wait."""
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
        """Wait until the last thread has ended, `seconds` at most; return whether it has."""
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
                self._changed.wait(self._idle_seconds)
                self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()[0]
            if self._shut and self._running == 1 and not self._ending:
                self._ending = True
                return self._end
            # Under the same lock: a call that comes now starts another thread.
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
    return Overloaded("too many calls wait; try again later")


def _do(work: Callable[[], T], future: "asyncio.Future[T]") -> None:
    # The caller has given up, so the call need not begin.
    if future.cancelled():
        return
    try:
        settle: Callable[[], None] = partial(future.set_result, work())
    except Exception as error:  # noqa: BLE001 - the caller gets it
        settle = partial(future.set_exception, error)
    _settle(future, settle)


def _settle(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and the caller with it
        future.get_loop().call_soon_threadsafe(_unless_done, future, settle)


def _unless_done(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
