"""A progress bar on stderr, if that is a terminal."""

import sys
import threading
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Unit = Literal["things", "bytes"]


class Ended(Exception):
    """The caller no longer waits for this work."""


class Bar:
    """Shows the progress of long work, and disappears when it ends. Thread-safe.

    The work calls the bar at each step. After `end`, the next step raises `Ended`, so work in another thread stops soon
    after an interrupt.

    Args:
        unit: of the numbers.
        shown: whether the bar is visible.
    """

    def __init__(self, *, unit: Unit = "things", shown: bool = True) -> None:
        self._unit = unit
        self._seen = shown and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def __call__(self, done: int, total: int | None, what: str) -> None:
        """Show the amount done, the total if it is known, and the name of the step.

        Raises:
            Ended: the caller no longer waits for this work.
        """
        with self._lock:
            if self._ended:
                raise Ended
            if self._seen:
                self._show(done, total, what)

    def end(self) -> None:
        """Remove the bar for good."""
        with self._lock:
            self._ended = True
            if self._progress is not None:
                self._progress.stop()
                self._progress = None

    def _show(self, done: int, total: int | None, what: str) -> None:
        if self._progress is None or self._task is None:
            self._progress = _made(self._unit)
            self._task = self._progress.add_task(what, total=total)
            self._progress.start()
        self._progress.update(self._task, completed=done, total=total, description=what)


def _made(unit: Unit) -> "Progress":
    # Slow to import, and most commands show none.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), count,
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
