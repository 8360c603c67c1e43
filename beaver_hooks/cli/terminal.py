"""Output for a terminal: safe text, and a status line while the user waits."""

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from beaver_hooks.cli.streams import Unwritable
from beaver_hostspecs.neutralising import neutralise

if TYPE_CHECKING:
    from rich.status import Status


CUT = "The provider cut this answer off, so its end is missing. Ask the model to continue, or for less."
"""The remark about a truncated answer."""

PATIENCE = 1.0
"""Seconds without output before the status line appears."""


Paint = Callable[[str], str]
"""Colours a text that is safe for a terminal. It adds and removes no word."""

STATES = {"ok": "green", "degraded": "yellow", "unavailable": "red", "disabled": "cyan"}
LEVELS = {"ok": "green", "warning": "yellow", "problem": "red"}
ROLES = {"user": "cyan", "assistant": "green", "hidden": "magenta", "tool": "magenta"}


def harmless(text: str) -> str:
    """Return `text` safe for a terminal: without control characters, lone surrogates, or characters that hide text."""
    return neutralise(text)


def escaped(text: str) -> str:
    """Return `text` with each invisible character as an escape; tabs and line feeds stay."""
    return "".join(each if each in "\t\n" or _is_shown(each) else _escape(each) for each in text)


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal that understands escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def takes_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them (https://no-color.org)."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def painter(pattern: str, colours: Mapping[str, str]) -> Paint:
    """Return a `Paint` for the group `word` of each match, by the colour of that word."""
    compiled = re.compile(pattern, re.MULTILINE)

    def paint(text: str) -> str:
        return compiled.sub(lambda found: _painted(found, colours), text)

    return paint


def whole(colour: str) -> Paint:
    """Return a `Paint` for each line of a text."""

    def paint(text: str) -> str:
        return "\n".join(click.style(line, fg=colour) if line else line for line in text.split("\n"))

    return paint


def _painted(found: re.Match[str], colours: Mapping[str, str]) -> str:
    first, last = (each - found.start() for each in found.span("word"))
    return found[0][:first] + click.style(found["word"], fg=colours[found["word"]]) + found[0][last:]


def _any(words: Mapping[str, str]) -> str:
    return f"(?P<word>{'|'.join(words)})"


# Anchored at the place of our own words: texts of plugins and people are indented, and keep their colour.
level = painter(rf"^{_any(LEVELS)} ", LEVELS)
state = painter(rf"^\S+ +{_any(STATES)}\b", STATES)
listed_state = painter(rf"^\S.*? \(fail-(?:open|closed)\): {_any(STATES)}\b", STATES)
role = painter(rf"^{_any(ROLES)}(?=[ ,]|$)", ROLES)
hit_role = painter(rf"^\S+  {_any(ROLES)}(?=, )", ROLES)


def show(text: str = "", *, end: str = "\n", err: bool = False, paint: Paint | None = None) -> None:
    """Write to stdout (or stderr) at once: unchanged for a program, harmless for a terminal.

    Args:
        text: the text.
        end: its end.
        err: whether it goes to stderr.
        paint: colours the text on a terminal that takes colour.

    Raises:
        BrokenPipeError: the reader of stdout has closed it.
        Unwritable: stdout cannot be written. A failure of stderr is ignored.
    """
    stream = sys.stderr if err else sys.stdout
    shown = harmless(text) if stream.isatty() else text
    # Only now: harmless text contains no escape sequence, so the only ones are those of `paint`.
    shown = paint(shown) if paint is not None and takes_colour(stream) else shown
    write(shown + end, err=err)


def write(text: str, *, err: bool = False) -> None:
    """Write a text that is fit for its stream to stdout (or stderr) at once; see `show`."""
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        if not err:
            raise (error if isinstance(error, BrokenPipeError) else Unwritable(error)) from None


def agreed(*, yes: bool) -> bool:
    """Whether the user agrees, at a terminal or by `--yes`."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "There is no terminal to ask for confirmation; review it, and run the command again with --yes."
        )
    return click.confirm("Use it from now on?", err=True)


@contextmanager
def waiting(text: str) -> Iterator[Callable[[], None]]:
    """Show a status line on a terminal, once the block takes longer than a second.

    Yields a function that removes the line before the end of the block. Call it before writing to stdout.
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
        over: removes the status line.
    """

    def __init__(self, over: Callable[[], None]) -> None:
        self.over = over
        self._open = False

    def __call__(self, piece: str) -> None:
        """Show one piece."""
        self.over()
        # Before it is shown: after an interrupt, `end` must end the line, too.
        self._open = not piece.endswith("\n") if piece else self._open
        show(piece, end="")

    def end(self) -> None:
        """End the line, if it is open: the next output begins a new one."""
        if self._open:
            self._open = False
            show()


@contextmanager
def ended(over: Callable[[], None], make: Callable[[Callable[[], None]], Pieces] = Pieces) -> Iterator[Pieces]:
    """Yield `Pieces` that show an answer piece by piece; end its line with the block.

    Args:
        over: removes the status line.
        make: makes the `Pieces`.
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
    """Do nothing: no status line is shown."""


class _Status:
    """A line with a spinner on stderr, from when it is started until it is stopped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._live: Status | None = None
        self._over = False

    def start(self) -> None:
        """Show the line, unless it was stopped already."""
        from rich.console import Console  # noqa: PLC0415 - slow, and most waits are short

        with self._lock:
            if not self._over:
                self._live = Console(stderr=True).status(self._text)
                self._live.start()

    def stop(self) -> None:
        """Remove the line for good."""
        with self._lock:
            self._over = True
            if self._live is not None:
                self._live.stop()
                self._live = None
