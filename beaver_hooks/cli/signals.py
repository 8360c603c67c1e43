"""SIGTERM and SIGHUP end a command as Ctrl-C does: an open turn is dropped, and what happened is audited."""

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Self

from beaver_hooks.cli.codes import SIGNALLED

if TYPE_CHECKING:
    import asyncio

NAMES = ("SIGTERM", "SIGHUP")
"""Not every system has both."""


class Terminated(KeyboardInterrupt):
    """The process is to end. Unlike Ctrl-C it is not about the prompt alone."""


class Signals:
    """Turns the signals into interruptions, within a `with` block of the main thread.

    Attributes:
        code: the exit code, once one of them has come.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._ours: list[signal.Signals] = []

    def __enter__(self) -> Self:
        found = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
        if threading.current_thread() is threading.main_thread():
            # What somebody ignores on purpose (nohup) stays ignored.
            self._ours = [each for each in found if signal.getsignal(each) is signal.SIG_DFL]
        for each in self._ours:
            signal.signal(each, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._ours:
            signal.signal(each, signal.SIG_DFL)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.code is not None:
            # A shell and its terminal may both say so; what is being put in order is not cut short by that.
            return
        self.code = SIGNALLED + number
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt) and interrupt is not signal.default_int_handler:
            # The event loop's: it cancels what is running, and raises afterwards.
            interrupt(signal.SIGINT, frame)
        elif (loop := _running_loop()) is not None:
            # Where Ctrl-C is ignored. Between two steps, so that nothing is torn: what drops the turn, least of all.
            loop.call_soon_threadsafe(_interrupt)
        else:
            raise Terminated


def _running_loop() -> "asyncio.AbstractEventLoop | None":
    import asyncio  # noqa: PLC0415 - only who is ended in this way pays for it

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _interrupt() -> None:
    raise Terminated
