"""Reads lines from a pipe in another thread than the main one, so that it can be interrupted.

A thread that hangs in the reader of `sys.stdin` when Python ends brings the process down. So the descriptor is read,
and only when there is something to read.
"""

import os
import select
from collections.abc import Callable, Iterator

PAUSE = 0.2
"""Seconds between two looks at whether anybody still waits."""

_CHUNK = 64 * 1024


def lines(descriptor: int, longest: int, step: Callable[[], object]) -> Iterator[bytes]:
    """Give the lines, without their ends.

    Args:
        descriptor: what is read.
        longest: bytes of a line; what is longer is given in parts.
        step: called again and again, also while nothing comes; what it raises ends the reading.
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
