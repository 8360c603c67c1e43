"""Opens the trail and the recorder; the host also runs if the trail cannot be opened, and logs that."""

import secrets
from functools import partial
from pathlib import Path

from beaver_hooks.audit.chain import identifier_key, identify
from beaver_hooks.audit.key import read_key
from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import Log
from beaver_hooks.options import Options
from beaver_hooks.receipts.facts import Identify
from beaver_hooks.receipts.health_store import HealthStore, StoredHealth
from beaver_hooks.receipts.recorder import AUDIT, HOST, SWITCH, Recorder
from beaver_hostspecs import AuditUnavailable, Clock
from beaver_hostspecs.naming import type_name


def open_recorder(options: Options, log: Log) -> Recorder:
    """Open the trail in the state folder, and return a recorder that writes to it and to the further sinks."""
    folder, clock = options.state_folder, options.clock
    trail, reason = _open_trail(folder, clock)
    recorder = Recorder(
        clock=clock,
        trail=trail,
        sinks=options.sinks,
        health=HealthStore(clock=clock, stored=StoredHealth(trail, log)),
        identify=trail.identify if trail else _identify_without_trail(folder),
        log=log,
    )
    recorder.health.loaded(HOST)
    # The faults of an earlier process (a full queue, a trail that could not be written) ended with that process.
    for source in {AUDIT, *recorder.health[HOST].faults} - {SWITCH}:
        recorder.succeeded(HOST, source=source)
    if trail is None:
        recorder.degraded(HOST, source=AUDIT, category="unavailable")
        log.error("audit_unavailable", reason=reason)
    return recorder


def _open_trail(folder: Path, clock: Clock) -> tuple[Trail | None, str]:
    """Return the open trail, or `None` and the reason."""
    try:
        return Trail.open(folder, clock=clock), ""
    except AuditUnavailable as error:
        return None, str(error)
    except (ImportError, OSError, ValueError) as error:  # no database engine, no such place, no such name
        return None, type_name(error)


def _identify_without_trail(folder: Path) -> Identify:
    """Return an `identify` with the key of the folder, or with a random key if the folder has none."""
    try:
        key = read_key(folder)
    except (AuditUnavailable, ValueError):  # no file can have that name
        key = None
    return partial(identify, secrets.token_bytes(32) if key is None else identifier_key(key.secret))
