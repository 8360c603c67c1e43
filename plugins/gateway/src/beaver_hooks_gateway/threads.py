"""Work that may block, in a thread that nobody waits for.

The event loop's own threads belong to everybody in the process: calls that hang there would keep others from theirs,
and the process from ending. A `Worker` has one daemon thread, only while there is something to do.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """Does one call after another in a thread of its own.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Return what will hold the result of `work`, or its exception, in the running loop."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(partial(_do, work, future))
            begin, self._running = not self._running, True
        if begin:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        return future

    def _run(self) -> None:
        while (call := self._next()) is not None:
            call()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running = False
            return None


def _do(work: Callable[[], T], future: asyncio.Future[T]) -> None:
    try:
        settle = partial(future.set_result, work())
    except Exception as error:  # noqa: BLE001 - whoever waits gets it
        settle = partial(future.set_exception, error)
    with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
        future.get_loop().call_soon_threadsafe(_unless_done, future, settle)


def _unless_done(future: asyncio.Future[T], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
