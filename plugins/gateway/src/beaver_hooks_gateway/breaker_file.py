"""The file in which processes share the state of a breaker. It follows no link and waits for no pipe."""

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from beaver_hooks_gateway.errors import TRANSIENT
from beaver_toolkit.breaker import CLOSED, BreakerState
from beaver_toolkit.files import open_regular, replace
from beaver_toolkit.strict_json import InvalidJson, loads

FILE = "breaker.json"
LOCK_FILE = ".breaker.lock"

REFUSED = "credentials_refused"
REASONS = TRANSIENT | {REFUSED}
"""Why a breaker can be open. The rest of the file is never shown, because any program may have written it."""

_MOST_BYTES = 4096


def read(folder: Path, default: BreakerState = CLOSED, *, whose: str = "") -> BreakerState:
    """Return the state in `folder`; `default` without a file, and `CLOSED` for a damaged one or another gateway's."""
    try:
        with open_regular(folder / FILE, follow_links=False) as file:
            text = file.read(_MOST_BYTES)
    except OSError:
        return default
    try:
        value = loads(text)
    except InvalidJson:
        return CLOSED
    return from_json(value) if isinstance(value, dict) and value.get("gateway") == whose else CLOSED


def write(folder: Path, state: BreakerState, *, whose: str = "") -> None:
    """Replace the state in `folder`. Where that fails, only the sharing is lost."""
    with contextlib.suppress(OSError):
        replace(folder / FILE, json.dumps({"gateway": whose, **asdict(state)}).encode("utf-8"))


def from_json(value: Mapping[str, object]) -> BreakerState:
    """Return the state that `write` wrote; `CLOSED` for anything else."""
    failures, until, reason = value.get("failures", 0), value.get("until"), value.get("reason")
    if not isinstance(failures, int) or failures < 0:
        return CLOSED
    if until is not None and not (isinstance(until, float) and math.isfinite(until)):
        return CLOSED
    if reason is not None and not (isinstance(reason, str) and reason in REASONS):
        return CLOSED
    return BreakerState(failures=failures, until=until, reason=reason)
