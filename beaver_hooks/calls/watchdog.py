"""Names the plugin that blocks the event loop.

Nothing in one process can stop code that does not yield. But a thread can see that the loop has been busy with the
same step for too long, look at what it is doing, and say whose code that is while it still hangs. A loop that is busy
with many short steps is not blocked, however long it takes to get through them.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType

from beaver_hooks.calls.calls import Call, Calls
from beaver_hooks.log import Log
from beaver_hostspecs.naming import type_name

Blame = Callable[[Call | None, str | None, float], None]
"""Called in the watching thread with the blocking call (or the plugin, if only that is known) and the seconds."""

LOOKS = 4
"""Looks at the loop per patience: a blocking is named at most half of the patience late."""


class Watchdog:
    """Watches the event loop.

    Args:
        loop: the loop to watch.
        calls: the running calls.
        patience: seconds after which one step of the loop is called blocking.
        blame: what to call then, once per blocking; with nobody to blame only while calls are running.
        packages: top-level packages of the plugins' code, each with its plugin's name.
        log: where the watchdog says that it cannot watch.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        calls: Calls,
        patience: float,
        blame: Blame,
        packages: Callable[[], Mapping[str, str]],
        log: Log,
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._patience = patience
        self._blame = blame
        self._packages = packages
        self._log = log
        self._loop_thread = threading.get_ident()
        self._stopping = threading.Event()
        self._answered = True
        self._thread = threading.Thread(target=self._watch, name="beaver-hooks-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch; called in the loop's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread, which never takes long to notice."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        seen: object = None
        since: float | None = None
        while not self._stopping.wait(self._patience / LOOKS):
            step = self._step() if self._overdue() else None
            now = time.monotonic()
            if step is not seen:
                seen, since = step, now
            elif step is not None and since is not None and now - since >= self._patience:
                self._accuse(now - since)
                since = None  # once; the next step begins anew

    def _overdue(self) -> bool:
        """Whether the loop has not answered since the last look; if it has, it is asked again."""
        if not self._answered:
            return True
        self._answered = False
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop was closed, and nothing can block it any more
            self._stopping.set()
        return False

    def _answer(self) -> None:
        self._answered = True

    def _step(self) -> object:
        """Return what stands for the step that the loop is in: the frame of the callback it runs, or its task."""
        frame = _frame_of(self._loop_thread)
        while frame is not None:
            if frame.f_code is asyncio.Handle._run.__code__:  # noqa: SLF001 - made anew for every step
                return frame
            frame = frame.f_back
        # Another loop's steps leave no such frame; a task that is current twice is as good as can be had.
        return asyncio.current_task(self._loop)

    def _accuse(self, seconds: float) -> None:
        try:
            call, plugin = self._culprit()
            if plugin is not None or self._calls.running:
                self._blame(call, plugin, seconds)
        except Exception as error:  # noqa: BLE001 - a watchdog that died would never be missed
            self._log.error("watchdog_failed", error=type_name(error))

    def _culprit(self) -> tuple[Call | None, str | None]:
        task = asyncio.current_task(self._loop)
        call = self._calls.running.get(task) if task is not None else None
        if call is not None:
            call.blocked = True
            return call, call.plugin
        plugin = owner(_frame_of(self._loop_thread), self._packages())
        for each in tuple(self._calls.running.values()):
            # What it does elsewhere is its own too: a call that runs meanwhile proves nothing.
            each.blocked = each.blocked or each.plugin == plugin
        return None, plugin


def _frame_of(thread: int) -> FrameType | None:
    """Return what another thread is doing now."""
    # Before CPython 3.11.9 and 3.12.3 a garbage collection that begins in there can stop the process for ever.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)  # noqa: SLF001 - the one way to see another thread's stack
    finally:
        if collecting:
            gc.enable()


def owner(frame: FrameType | None, packages: Mapping[str, str]) -> str | None:
    """Return the plugin whose code is innermost on the stack, or `None`."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            return packages[package]
        frame = frame.f_back
    return None
