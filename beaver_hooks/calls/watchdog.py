"""Names the plugin that blocks the event loop.

Nothing in one process can stop code that does not yield. But a thread can see that the loop no longer answers, look at
what it is doing, and say whose code that is while it still hangs.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from types import FrameType

from beaver_hooks.calls.calls import Call, Calls

Blame = Callable[[Call | None, str | None, float], None]
"""Called in the watching thread with the blocking call (or the plugin, if only that is known) and the seconds."""


class Watchdog:
    """Watches the event loop while hook calls are running.

    Args:
        loop: the loop to watch.
        calls: the running calls.
        patience: seconds after which a loop that does not answer is blocked.
        blame: what to call then, once per blocking.
        packages: top-level packages of the plugins' code, each with its plugin's name.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        calls: Calls,
        patience: float,
        blame: Blame,
        packages: Callable[[], dict[str, str]],
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._patience = patience
        self._blame = blame
        self._packages = packages
        self._loop_thread = threading.get_ident()
        self._stopping = threading.Event()
        self._answered = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="beaver-hooks-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch; called in the loop's own thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and wait for the thread, which never takes long to notice."""
        self._stopping.set()
        self._answered.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(self._patience / 2):
            if self._calls.running and not self._answers():
                self._accuse()
                self._answered.wait()

    def _answers(self) -> bool:
        self._answered.clear()
        if self._stopping.is_set():
            return True  # whoever stops us has set what was just cleared, and waits for us in the loop's thread
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        except RuntimeError:  # the loop was closed under us: there is nothing left to watch
            self._stopping.set()
            return True
        return self._answered.wait(self._patience)

    def _accuse(self) -> None:
        task = asyncio.current_task(self._loop)
        call = self._calls.running.get(task) if task is not None else None
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the one way to see another thread's stack
        plugin = call.plugin if call else owner(frame, self._packages())
        for each in list(self._calls.running.values()):
            # What it does beside its calls is no success of theirs.
            each.blocked = each.blocked or each.plugin == plugin
        self._blame(call, plugin, self._patience)


def owner(frame: FrameType | None, packages: dict[str, str]) -> str | None:
    """Return the plugin whose code is innermost on the stack, or `None`."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            return packages[package]
        frame = frame.f_back
    return None
