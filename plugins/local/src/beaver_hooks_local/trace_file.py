"""The trace file: one line of JSON for each operation of memory, in names, counts and categories, without content.

Only the user can read it. At its largest size it begins anew, and the old file gets `.1` appended to its name.
Several processes may write to one file. A failure to write is reported once and stops no operation.
"""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beaver_hostspecs import Clock, SystemClock, scrub
from beaver_toolkit.locks import locked

MOST_BYTES = 10 * 1024 * 1024
LONGEST = 200
"""Characters of a fact; longer texts are content."""

# Windows has neither of the last two.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class TraceFile:
    """Appends to a trace file. Thread-safe.

    Args:
        path: the file.
        most_bytes: its largest size.
        clock: the source of time.
        told: called with the name of the error when a write fails, and with `None` when a write works again.
    """

    def __init__(
        self,
        path: Path,
        *,
        most_bytes: int = MOST_BYTES,
        clock: Clock | None = None,
        told: Callable[[str | None], object] = bool,
    ) -> None:
        self._path = path
        self._most = most_bytes
        self._clock = clock or SystemClock()
        self._told = told
        self._failed = False
        self._lock = threading.Lock()

    def __call__(self, event: str, /, **facts: Any) -> None:
        """Write down an event."""
        line = self._line(event, facts)
        with self._lock:
            failure = self._try(line)
            changed, self._failed = self._failed != (failure is not None), failure is not None
        if changed:
            self._told(failure)

    def _line(self, event: str, facts: dict[str, Any]) -> bytes:
        body = {"at": self._clock.now().isoformat(), "pid": os.getpid(), "event": event}
        body |= {name: _plain(value) for name, value in facts.items() if name not in body}
        return json.dumps(body, ensure_ascii=True).encode("ascii") + b"\n"

    def _try(self, line: bytes) -> str | None:
        try:
            self._append(line)
        except OSError as error:
            return type(error).__name__
        return None

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            if os.fstat(descriptor).st_size + len(line) > self._most:
                self._rotate(descriptor)
                os.close(descriptor)
                descriptor = os.open(self._path, _FLAGS, 0o600)
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def _rotate(self, descriptor: int) -> None:
        """Rename the full file, unless another process has done so."""
        with locked(self._path.with_name(f".{self._path.name}.lock")):
            mine, there = os.fstat(descriptor), _stat(self._path)
            if there is not None and (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _plain(value: object) -> object:
    """Return a fact as JSON can hold it: short, scrubbed, and of a type that carries no content."""
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str):
        return scrub(value[: 4 * LONGEST])[:LONGEST]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value[:50]]
    return type(value).__name__
