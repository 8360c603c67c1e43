"""Reads lines from a pipe in another thread than the main one, in a way that can be interrupted.

A thread that hangs in the reader of `sys.stdin` when Python ends brings the process down. So `lines` reads the
descriptor, and only when it is ready.
"""

import os
import select
from collections.abc import Callable, Iterator

PAUSE = 0.2
"""The longest time without a call of `step`, in seconds."""

_CHUNK = 64 * 1024


def lines(descriptor: int, longest: int, step: Callable[[], object]) -> Iterator[bytes]:
    """Yield the lines, without their ends.

    Args:
        descriptor: of the pipe.
        longest: bytes of a line; a longer line comes in parts.
        step: called repeatedly, also while no input comes; an error from it ends the reading.
    """
    rest = b""
    while True:
        step()
        if not select.select([descriptor], [], [], PAUSE)[0]:
            continue
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > longest:
            yield rest
            rest = b""
    if rest:
        yield rest
