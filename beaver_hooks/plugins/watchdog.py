"""Names the plugin that blocks the event loop.

Nothing in one process can stop code that does not yield. But a thread can see that the loop has been busy with the
same step for too long, look at what it is doing, and say whose code that is while it still hangs. A loop that is busy
with many short steps is not blocked, however long it takes to get through them.
"""

import asyncio
import gc
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

import attrs

from beaver_hooks.log import Log
from beaver_hooks.plugins.hook_calls import Call, Calls
from beaver_hostspecs.naming import type_name

Blame = Callable[[Call | None, str | None, float], None]
"""Called in the watching thread with the blocking call (or the plugin, if only that is known) and the seconds."""

Overran = Callable[[Sequence[Call]], None]
"""Called in the watching thread with those calls of a plugin that may not take as long as it has blocked by now."""

LOOKS = 4
"""Looks at the loop per patience: a blocking is named at most half of the patience late."""


@attrs.define(eq=False)
class _Block:
    """A step of the loop that is seen again and again: for how long, and in which calls of whom."""

    step: object
    seconds: float = 0.0
    named: bool = False
    calls: tuple[Call, ...] = ()


class Watchdog:
    """Watches the event loop.

    Args:
        loop: the loop to watch.
        calls: the running calls.
        patience: seconds after which one step of the loop is called blocking.
        blame: what to call then, once per blocking; with nobody to blame only while calls are running.
        overran: what to call while a blocking goes on beyond the deadlines of calls, once per call.
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
        overran: Overran,
        packages: Callable[[], Mapping[str, str]],
        log: Log,
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._patience = patience
        self._blame = blame
        self._overran = overran
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
        self._calls.look_due = math.inf

    def _watch(self) -> None:
        pause = self._patience / LOOKS
        block, last = _Block(None), time.monotonic()
        while not self._stopping.wait(pause):
            now = time.monotonic()
            # A look that comes late shows that the whole process stood still, and says nothing about the step.
            passed, last = min(now - last, 2 * pause), now
            self._note_look(now, due=now + 2 * pause)
            step = self._step() if self._overdue() else None
            if step is not block.step:
                block = _Block(step)
            elif step is not None:
                block.seconds += passed
                self._judge(block)

    def _note_look(self, now: float, *, due: float) -> None:
        """Mark the calls that run while a look comes late, and keep when the next one is due."""
        if now > self._calls.look_due:
            for each in tuple(self._calls.running.values()):
                each.stood_still = True
        self._calls.look_due = due

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

    def _judge(self, block: _Block) -> None:
        try:
            if block.seconds >= self._patience and not block.named:
                block.named = True  # once; the next step begins anew
                self._accuse(block)
            if over := [each for each in block.calls if not each.overran and block.seconds > each.allowed]:
                for each in over:
                    each.overran = True
                self._overran(over)
        except Exception as error:  # noqa: BLE001 - a watchdog that died would never be missed
            self._log.error("watchdog_failed", error=type_name(error))

    def _accuse(self, block: _Block) -> None:
        task = asyncio.current_task(self._loop)
        call = self._calls.running.get(task) if task is not None else None
        if call is not None:
            plugin: str | None = call.plugin
            block.calls = (call,)
        else:
            plugin = owner(_frame_of(self._loop_thread), self._packages())
            # What it does elsewhere is its own too: a call that runs meanwhile proves nothing.
            block.calls = tuple([each for each in tuple(self._calls.running.values()) if each.plugin == plugin])
        for each in tuple(self._calls.running.values()):
            if each in block.calls:
                each.blocked = True
            elif each.plugin != plugin:
                each.held_up = True
        if plugin is not None or self._calls.running:
            self._blame(call, plugin, block.seconds)


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
