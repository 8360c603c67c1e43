"""Handling of standard streams that are closed or cannot be written."""

import contextlib
import os
import sys
from typing import TextIO, cast

import click

from beaver_hooks.cli.codes import FOUND

STREAMS = {"stdin": os.O_RDONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
"""The mode in which the null device replaces each closed stream: writing to stdout then fails, as intended."""


class Unwritable(click.ClickException):
    """The output cannot be written to stdout."""

    exit_code = FOUND

    def __init__(self, error: OSError) -> None:
        why = error.strerror or type(error).__name__
        super().__init__(f"Nothing can be written to stdout ({why}). Open stdout, or make room on its disk.")


def mend() -> None:
    """Replace closed streams: a file that is opened later would take their number."""
    for name, flags in STREAMS.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, flags)
            # It stays open until the last output.
            stream = os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def tell(text: str) -> None:
    """Write a text to stderr, if possible."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def fault(error: Exception | None = None) -> OSError | None:
    """Return the error of writing to stdout, or `None`; `error` is one that the caller caught."""
    try:
        sys.stdout.flush()
    except OSError as found:
        return found
    # Without a buffer, the failed output is lost, and the flush succeeds.
    return error if isinstance(error, OSError) and _is_of_click(error) else None


def _is_of_click(error: OSError) -> bool:
    """Whether click raised the error while writing."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == click.echo.__module__


def unreadable(error: OSError) -> click.UsageError:
    """Return the error for a stdin that cannot be read."""
    return click.UsageError(
        f"stdin cannot be read ({error.strerror or type(error).__name__}); redirect a file or a pipe to it."
    )


def settle() -> None:
    """Discard output that cannot be written: Python would try again at its end, and print an error."""
    for name in ("stdout", "stderr"):
        stream = cast("TextIO", getattr(sys, name))
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
