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
"""Seconds that the remaining tasks have to end, before they are abandoned with the loop."""

NOT_OPEN = "this host is not open; enter it with `with host:` or `host.open()`"

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads, until one of them ends the loop.

    Every call ends: a call without a result when the loop ends gets a `CancelledError`.
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
        """Raise in a forked child, which does not have the thread and would wait for it for ever."""
        if os.getpid() != self._process:
            raise ForkedHost(FORKED)

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **keywords: Any) -> T:
        """Run a coroutine function in the caller's context; return its result. Interrupting the caller cancels it."""
        future: Future[T] | None = None
        try:
            # Under the lock, so that `end` sees this call, or this call sees that the loop ends.
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

        Cancelling the caller cancels the coroutine. In this thread's own loop the coroutine is awaited directly.
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

        An interrupt of the caller cancels `last`, and the thread waits until `last` has handled that.

        Raises:
            HostNotOpen: another call ends it already.
        """
        with self._lock:
            self._check_going()
            self._ending = True
            hurry = asyncio.Event()
            ended = self._begin(self._wind_up(last, hurry))
        try:
            ended.result()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the loop is closed already if `last` itself failed
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
        # A plugin's KeyboardInterrupt ends the wait of its caller, and not the loop.
        while not self._over:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self._loop.run_forever()
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            self._loop.run_until_complete(self._let_go())
        for future in tuple(self._calls):
            future.cancel()
        self._loop.close()

    async def _let_go(self) -> None:
        """Cancel the remaining tasks, and wait `MOMENT` for them."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=MOMENT)
        await self._loop.shutdown_asyncgens()
