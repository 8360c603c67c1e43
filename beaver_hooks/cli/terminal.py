"""What a person at a terminal sees: text that does no harm there, and a sign of life when something takes long."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from beaver_hooks.cli.colours import Paint, takes_colour
from beaver_hooks.cli.streams import Unwritable
from beaver_hostspecs.neutralising import neutralise

if TYPE_CHECKING:
    from rich.status import Status

CUT = "The provider cut this answer off, so its end is missing. Ask the model to continue, or for less."
"""What is said of an answer that is truncated."""

PATIENCE = 1.0
"""Seconds without a word before something is said."""


def harmless(text: str) -> str:
    """Return `text` as any terminal may be sent: no control character, no lone surrogate, nothing that hides text."""
    return neutralise(text)


def escaped(text: str) -> str:
    """Return `text` with each character that a terminal does not show as an escape; tabs and line feeds stay."""
    return "".join(each if each in "\t\n" or _is_shown(each) else _escape(each) for each in text)


def show(text: str = "", *, end: str = "\n", err: bool = False, paint: Paint | None = None) -> None:
    """Write to stdout (or stderr) at once: as it is for a program, harmless for a terminal.

    Args:
        text: what is written.
        end: what ends it.
        err: whether it goes to stderr.
        paint: colours the text, where it goes to a terminal that takes colour.

    Raises:
        BrokenPipeError: whoever read stdout has enough.
        Unwritable: stdout cannot be written. That stderr cannot is said nowhere.
    """
    stream = sys.stderr if err else sys.stdout
    shown = harmless(text) if stream.isatty() else text
    # Only now: what is harmless holds no escape sequence, and only ours are added.
    shown = paint(shown) if paint is not None and takes_colour(stream) else shown
    write(shown + end, err=err)


def write(text: str, *, err: bool = False) -> None:
    """Write what is fit for where it goes to stdout (or stderr) at once; see `show`."""
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        if not err:
            raise (error if isinstance(error, BrokenPipeError) else Unwritable(error)) from None


def agreed(*, yes: bool) -> bool:
    """Whether a person agrees, at a terminal or by `--yes`."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "There is no terminal to ask for confirmation; review it, and run the command again with --yes."
        )
    return click.confirm("Use it from now on?", err=True)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[], None]]:
    """Say on a terminal what is being waited for, once it takes longer than a second.

    Gives what ends the waiting before the block does. Call it before anything is written to stdout meanwhile.
    """
    if not sys.stderr.isatty():
        yield _nothing
        return
    shown = _Status(text)
    timer = threading.Timer(PATIENCE, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield shown.stop
    finally:
        timer.cancel()
        shown.stop()


class Pieces:
    """Shows an answer piece by piece, and knows whether its last line is still open.

    Attributes:
        over: ends the waiting for the answer.
    """

    def __init__(self, over: Callable[[], None]) -> None:
        self.over = over
        self._open = False

    def __call__(self, piece: str) -> None:
        """Show one piece."""
        self.over()
        # Before it is shown: whoever is interrupted meanwhile ends the line too.
        self._open = not piece.endswith("\n") if piece else self._open
        show(piece, end="")

    def end(self) -> None:
        """End the line, if it is open: what is said next begins another one."""
        if self._open:
            self._open = False
            show()


@contextmanager
def ended(over: Callable[[], None], make: Callable[[Callable[[], None]], Pieces] = Pieces) -> Iterator[Pieces]:
    """Give what shows an answer piece by piece; its line is ended with the block, whatever else is said then.

    Args:
        over: ends the waiting for the answer.
        make: makes what shows it.
    """
    pieces = make(over)
    try:
        yield pieces
    finally:
        pieces.end()


def _is_shown(character: str) -> bool:
    # Variation selectors and fillers are printable for Python.
    return character.isprintable() and (character.isascii() or neutralise(character) == character)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _nothing() -> None:
    """There is no waiting to end."""


class _Status:
    """A line with a spinner on stderr, from when it is started until it is stopped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._live: Status | None = None
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
                self._live.stop()
                self._live = None
