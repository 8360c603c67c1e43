"""What a person at a terminal sees: text that does no harm there, and a sign of life when something takes long."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unicodedata import category

from beaver_hostspecs.neutralising import neutralise

PATIENCE = 1.0
"""Seconds without a word before something is said."""


def harmless(text: str) -> str:
    """Return `text` as any terminal may be sent: no control character, no lone surrogate, nothing that hides text."""
    lines = neutralise(text.replace("\r\n", "\n"))
    return "".join("\ufffd" if each not in "\n\t" and category(each) in {"Cc", "Cs"} else each for each in lines)


def show(text: str = "", *, end: str = "\n", err: bool = False) -> None:
    """Write to stdout (or stderr) at once: as it is for a program, harmless for a terminal."""
    stream = sys.stderr if err else sys.stdout
    shown = harmless(text) if stream.isatty() else text
    stream.write(shown.encode(stream.encoding or "utf-8", "replace").decode(stream.encoding or "utf-8") + end)
    stream.flush()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Say on a terminal what is being waited for, once it takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    shown = _Status(text)
    timer = threading.Timer(PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        shown.stop()


class _Status:
    """A line with a spinner on stderr, from when it is started until it is stopped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._live: object | None = None
        self._over = False

    def start(self) -> None:
        """Show it, unless it was stopped already."""
        from rich.console import Console  # noqa: PLC0415 - slow, and most things are quick

        with self._lock:
            if not self._over:
                self._live = Console(stderr=True).status(self._text)
                self._live.start()

    def stop(self) -> None:
        """Take it away for good."""
        with self._lock:
            self._over = True
            if self._live is not None:
                self._live.stop()  # type: ignore[attr-defined]
