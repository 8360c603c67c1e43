"""Names the plugin that blocks the event loop.

No code in the process can stop code that does not yield. But a thread can see that the loop has been busy with the
same step for too long, look at its stack, and name the plugin while it still hangs. A loop that is busy with many
short steps is not blocked, however long they take together.
"""

import asyncio
import gc
import math
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType

import attrs

from beaver_hooks.log import Log
from beaver_hooks.plugins.hook_calls import Call, Calls
from beaver_hooks.plugins.registry import Registry
from beaver_hooks.plugins.suspensions import Suspensions
from beaver_hooks.receipts.recorder import Recorder
from beaver_hostspecs.naming import module_name, type_name

LOOKS = 4
"""Looks at the loop per `blocked_after`; the watchdog names a block at most half of that time late."""

NOT_TO_BLAME = frozenset({"__main__", "beaver_hooks", "beaver_hostspecs"})
"""Packages that are on every stack, or that contain more than plugins."""


@attrs.define(eq=False)
class _Block:
    """A step of the loop that several looks have seen, with its duration and the plugin's running calls."""

    step: object
    seconds: float = 0.0
    named: bool = False
    calls: tuple[Call, ...] = ()


@attrs.define(kw_only=True, eq=False, slots=False)
class Watchdog:
    """Watches the event loop, from a thread of its own.

    Args:
        loop: the loop to watch.
        calls: the running calls.
        blocked_after: the seconds after which one step of the loop counts as a block.
        registry: the plugins, whose packages are looked for on the stack.
        recorder: records each block once; if the plugin is unknown, only while calls are running.
        suspensions: suspends the hook of a plugin that blocks beyond the deadlines of its calls.
        log: takes the errors of the watchdog itself.
    """

    _loop: asyncio.AbstractEventLoop
    _calls: Calls
    _blocked_after: float
    _registry: Registry
    _recorder: Recorder
    _suspensions: Suspensions
    _log: Log
    _loop_thread: int = attrs.field(factory=threading.get_ident, init=False)
    _stopping: threading.Event = attrs.field(factory=threading.Event, init=False)
    _answered: bool = attrs.field(default=True, init=False)
    _thread: threading.Thread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="beaver-hooks-watchdog", daemon=True)

    def start(self) -> None:
        """Start watching; called in the loop's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread, which ends soon."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._calls.look_due = math.inf

    def _watch(self) -> None:
        pause = self._blocked_after / LOOKS
        block, last = _Block(None), time.monotonic()
        while not self._stopping.wait(pause):
            now = time.monotonic()
            # A late look shows that the whole process stood still, and proves nothing about the step.
            passed, last = min(now - last, 2 * pause), now
            self._note_look(now, due=now + 2 * pause)
            step = self._step() if self._overdue() else None
            if step is not block.step:
                block = _Block(step)
            elif step is not None:
                block.seconds += passed
                self._judge(block)

    def _note_look(self, now: float, *, due: float) -> None:
        """Mark the running calls if this look is late, and set the time at which the next one is late."""
        if now > self._calls.look_due:
            for each in tuple(self._calls.running.values()):
                each.stood_still = True
        self._calls.look_due = due

    def _overdue(self) -> bool:
        """Whether the loop has not answered since the last look; asks it again if it has."""
        if not self._answered:
            return True
        self._answered = False
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop is closed, so no step can block it
            self._stopping.set()
        return False

    def _answer(self) -> None:
        self._answered = True

    def _step(self) -> object:
        """Return an object that identifies the loop's current step: the frame of its callback, or its task."""
        frame = _frame_of(self._loop_thread)
        while frame is not None:
            if frame.f_code is asyncio.Handle._run.__code__:  # noqa: SLF001 - made anew for every step
                return frame
            frame = frame.f_back
        # Other event loops have no such frame; for them, the same current task twice counts as one step.
        return asyncio.current_task(self._loop)

    def _judge(self, block: _Block) -> None:
        try:
            if block.seconds >= self._blocked_after and not block.named:
                block.named = True  # once; the next step begins anew
                self._accuse(block)
            if over := [each for each in block.calls if not each.overran and block.seconds > each.allowed]:
                for each in over:
                    each.overran = True
                self._suspensions.blocked(over)
        except Exception as error:  # noqa: BLE001 - a dead watchdog would go unnoticed
            self._log.error("watchdog_failed", error=type_name(error))

    def _accuse(self, block: _Block) -> None:
        task = asyncio.current_task(self._loop)
        call = self._calls.running.get(task) if task is not None else None
        if call is not None:
            plugin: str | None = call.plugin
            block.calls = (call,)
        else:
            plugin = owner(_frame_of(self._loop_thread), packages_of(self._registry))
            # The plugin may block outside its calls too: a running call of another plugin proves nothing.
            block.calls = tuple([each for each in tuple(self._calls.running.values()) if each.plugin == plugin])
        for each in tuple(self._calls.running.values()):
            if each in block.calls:
                each.blocked = True
            elif each.plugin != plugin:
                each.held_up = True
        if plugin is not None or self._calls.running:
            hook, builder = (call.hook, call.report.builder) if call else (None, None)
            self._recorder.blocked(plugin, hook=hook, seconds=block.seconds, builder=builder)


def _frame_of(thread: int) -> FrameType | None:
    """Return the current frame of another thread."""
    # Before CPython 3.11.9 and 3.12.3 a garbage collection that starts in this call can hang the process.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)  # noqa: SLF001 - the one way to see another thread's stack
    finally:
        if collecting:
            gc.enable()


def packages_of(registry: Registry) -> dict[str, str]:
    """Return the top-level packages of the plugins' code, each with its plugin's name."""
    owners = {module_name(each.plugin).partition(".")[0]: each.name for each in registry.members()}
    return {package: name for package, name in owners.items() if package not in NOT_TO_BLAME}


def owner(frame: FrameType | None, packages: Mapping[str, str]) -> str | None:
    """Return the plugin whose code is innermost on the stack, or `None`."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            return packages[package]
        frame = frame.f_back
    return None
