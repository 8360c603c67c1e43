"""An event loop in a thread of its own, for callers without one."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from beaver_hooks.loop_affinity import FORKED
from beaver_hostspecs import ForkedHost, HostNotOpen, WrongLoop

MOMENT = 0.1
"""Seconds that what is left on the loop has to end, before it is abandoned with the loop."""

NOT_OPEN = "this host is not open; enter it with `with host:` or `host.open()`"

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads, until one of them ends it.

    Every call has an end: those that the loop has not answered when it ends get a `CancelledError`.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._calls: set[Future[Any]] = set()
        self._ending = self._over = False
        self._thread = threading.Thread(target=self._run, name="beaver-hooks", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise unless the caller may wait for this thread."""
        self.check_process()
        if self._thread.ident == threading.get_ident():
            raise WrongLoop(
                "a SyncHost cannot be used in one of its own hooks, where it would wait for itself; use it outside of"
                " hooks"
            )

    def check_process(self) -> None:
        """Raise in a forked child: the thread was not forked, and waiting for it would be waiting for ever."""
        if os.getpid() != self._process:
            raise ForkedHost(FORKED)

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function, in the caller's context; return what it returns. Interrupting it cancels it."""
        future: Future[T] | None = None
        try:
            # Under the lock, so that whoever ends the loop sees this call, or this call sees that it ends.
            with self._lock:
                self._check_going()
                future = self._begin(function(*arguments, **keywords))
            return future.result()
        except BaseException:
            if future is not None:
                future.cancel()
            raise

    async def reach(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function as `call` does, while the caller's own event loop goes on.

        Cancelling the caller cancels it. In this thread's own loop it just runs.
        """
        self.check_process()
        if self._thread.ident == threading.get_ident():
            return await function(*arguments, **keywords)
        with self._lock:
            self._check_going()
            future = self._begin(function(*arguments, **keywords))
        return await asyncio.wrap_future(future)

    def end(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `last`, then end the loop and the thread.

        Interrupting the caller cuts `last` short: it is cancelled, and what it does about that is waited for.

        Raises:
            HostNotOpen: somebody ends it already.
        """
        with self._lock:
            self._check_going()
            self._ending = True
            hurry = asyncio.Event()
            ended = self._begin(self._wind_up(last, hurry))
        try:
            ended.result()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the loop is closed, where it was `last` that failed
                self._loop.call_soon_threadsafe(hurry.set)
            raise
        finally:
            self._thread.join()

    def _check_going(self) -> None:
        if self._ending:
            raise HostNotOpen(NOT_OPEN)

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    async def _wind_up(self, last: Callable[[], Coroutine[Any, Any, object]], hurry: asyncio.Event) -> None:
        closing, hurried = asyncio.ensure_future(last()), asyncio.ensure_future(hurry.wait())
        try:
            await asyncio.wait({closing, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if hurried.done():
                closing.cancel()
            await closing
        finally:
            hurried.cancel()
            self._over = True
            self._loop.stop()

    def _run(self) -> None:
        # What a plugin's KeyboardInterrupt ends is its caller's waiting, and nobody's loop.
        while not self._over:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            self._loop.run_until_complete(self._let_go())
        for future in tuple(self._calls):
            future.cancel()
        self._loop.close()

    async def _let_go(self) -> None:
        """Give what is left one chance to end."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=MOMENT)
        await self._loop.shutdown_asyncgens()
