"""SIGTERM and SIGHUP end a command as Ctrl-C does: an open turn is dropped, and this is audited."""

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Self

from beaver_hooks.cli.codes import SIGNALLED

if TYPE_CHECKING:
    import asyncio

NAMES = ("SIGTERM", "SIGHUP")
"""The signals, as far as the system has them."""


class Terminated(KeyboardInterrupt):
    """A signal ends the process, while Ctrl-C may end only the prompt."""


class Signals:
    """Turns the signals into interruptions, within a `with` block of the main thread.

    Attributes:
        code: the exit code, once one of them has arrived.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._ours: list[signal.Signals] = []

    def __enter__(self) -> Self:
        found = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
        if threading.current_thread() is threading.main_thread():
            # A signal that is ignored on purpose (nohup) stays ignored.
            self._ours = [each for each in found if signal.getsignal(each) is signal.SIG_DFL]
        for each in self._ours:
            signal.signal(each, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._ours:
            signal.signal(each, signal.SIG_DFL)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.code is not None:
            # A shell and its terminal may both send a signal; the second one must not cut the cleanup short.
            return
        self.code = SIGNALLED + number
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            # The event loop's handler: it cancels the running task, and raises afterwards.
            interrupt(signal.SIGINT, frame)
        elif (loop := _running_loop()) is not None:
            # If Ctrl-C is ignored. Between two steps of the loop, so that no step is cut, least of all a turn's drop.
            loop.call_soon_threadsafe(_interrupt)
        else:
            raise Terminated


def _running_loop() -> "asyncio.AbstractEventLoop | None":
    import asyncio  # noqa: PLC0415 - needed only after a signal

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _interrupt() -> None:
    raise Terminated
