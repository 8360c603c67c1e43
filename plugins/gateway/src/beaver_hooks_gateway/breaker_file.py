"""The file in which processes share the state of a breaker. It follows no link and waits for no pipe."""

import contextlib
import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from beaver_hooks_gateway.errors import TRANSIENT
from beaver_toolkit.breaker import CLOSED, State
from beaver_toolkit.files import replace
from beaver_toolkit.strict_json import InvalidJson, loads

FILE = "breaker.json"
LOCK_FILE = ".breaker.lock"

REFUSED = "credentials refused"
REASONS = TRANSIENT | {REFUSED}
"""Why a breaker can be open. The rest of the file is never shown, because any program may have written it."""

_MOST_BYTES = 4096
# Windows has neither flag, nor such links and pipes.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read(folder: Path, default: State = CLOSED, *, whose: str = "") -> State:
    """Return the state in `folder`; `default` without a file, and `CLOSED` for a damaged one or another gateway's."""
    try:
        text = _content(folder / FILE)
    except OSError:
        return default
    try:
        value = loads(text)
    except InvalidJson:
        return CLOSED
    return from_json(value) if isinstance(value, dict) and value.get("gateway") == whose else CLOSED


def write(folder: Path, state: State, *, whose: str = "") -> None:
    """Replace the state in `folder`. Where that fails, only the sharing is lost."""
    with contextlib.suppress(OSError):
        replace(folder / FILE, json.dumps({"gateway": whose, **asdict(state)}).encode("utf-8"))


def from_json(value: Mapping[str, object]) -> State:
    """Return the state that `write` wrote; `CLOSED` for anything else."""
    failures, until, reason = value.get("failures", 0), value.get("until"), value.get("reason")
    if not isinstance(failures, int) or failures < 0:
        return CLOSED
    if until is not None and not (isinstance(until, float) and math.isfinite(until)):
        return CLOSED
    if reason is not None and not (isinstance(reason, str) and reason in REASONS):
        return CLOSED
    return State(failures=failures, until=until, reason=reason)


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a file")
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
