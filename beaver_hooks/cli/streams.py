"""The three standard streams, where one of them is closed or cannot be written."""

import contextlib
import os
import sys
from typing import TextIO, cast

import click

from beaver_hooks.cli.codes import FOUND

STREAMS = {"stdin": os.O_RDONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
"""How the null device stands in for each that is closed: writing to stdout fails then, as it should."""


class Unwritable(click.ClickException):
    """What is to be said cannot be written to stdout."""

    exit_code = FOUND

    def __init__(self, error: OSError) -> None:
        why = error.strerror or type(error).__name__
        super().__init__(f"Nothing can be written to stdout ({why}). Open stdout, or make room on its disk.")


def mend() -> None:
    """Put something in place of the streams that are closed: a file that is opened later would take their number."""
    for name, flags in STREAMS.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, flags)
            # It stays open: whoever says something last says it there.
            stream = os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def tell(text: str) -> None:
    """Say something on stderr, if that can be."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def fault(error: Exception | None = None) -> OSError | None:
    """Return why stdout does not take what was written to it, or `None`; `error` is what somebody saw of that."""
    try:
        sys.stdout.flush()
    except OSError as found:
        return found
    # Where nothing is buffered, nothing is left that could be written again.
    return error if isinstance(error, OSError) and _is_of_click(error) else None


def _is_of_click(error: OSError) -> bool:
    """Whether it was raised while click wrote something."""
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
    """Let go of what can be written nowhere: Python would try again at its end, and complain."""
    for name in ("stdout", "stderr"):
        stream = cast("TextIO", getattr(sys, name))
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
