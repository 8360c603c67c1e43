"""The file in which a breaker's state is kept, and its lock. Nothing here follows a link, or waits for a pipe."""

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from beaver_hooks_gateway import breaker
from beaver_hooks_gateway.breaker import CLOSED, State
from beaver_toolkit.strict_json import InvalidJson, loads

FILE = "breaker.json"
LOCK_FILE = ".breaker.lock"
_MOST_BYTES = 4096
_TRIES, _PAUSE = 10, 0.005
# Windows has neither; nor does it have such links and pipes there.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read(folder: Path, default: State = CLOSED, *, whose: str = "") -> State:
    """Return the state that is kept in `folder`; `default` where there is none.

    What is about another gateway is none of ours, so that counts as closed.
    """
    try:
        with _opened(folder, os.O_RDONLY) as descriptor:
            text = os.read(descriptor, _MOST_BYTES)
    except OSError:
        return default
    try:
        value = loads(text)
    except InvalidJson:
        return CLOSED
    return breaker.from_json(value) if isinstance(value, dict) and value.get("gateway") == whose else CLOSED


def write(folder: Path, state: State, *, whose: str = "") -> None:
    """Keep the state. In place, as it is no promise to anybody: what is torn counts as closed."""
    text = json.dumps({"gateway": whose, **breaker.to_json(state)}).encode("utf-8")
    with contextlib.suppress(OSError), _opened(folder, os.O_WRONLY | os.O_CREAT) as descriptor:
        os.truncate(descriptor, 0)
        os.write(descriptor, text)


@contextlib.contextmanager
def _opened(folder: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(folder / FILE, flags | _CAREFULLY, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a file")
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of `folder`, or say `False` where it cannot be had soon: a process that hangs holds up nobody."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | _CAREFULLY, 0o600)
    except OSError:
        yield False
        return
    try:
        yield _waited(descriptor)
    finally:
        os.close(descriptor)


def _waited(descriptor: int) -> bool:
    """Return whether the lock was had in time."""
    for _ in range(_TRIES):
        if _taken(descriptor):
            return True
        time.sleep(_PAUSE)
    return False


def _taken(descriptor: int) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - Windows lacks it; there, two processes may probe at once
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
