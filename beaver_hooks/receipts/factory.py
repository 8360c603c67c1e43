"""Opens the trail, the recorder and the receipts; the host also runs if the trail cannot be opened, and logs that."""

import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks.audit.chain import identifier_key, identify
from beaver_hooks.audit.events import AuditSink
from beaver_hooks.audit.key import read_key
from beaver_hooks.audit.trail import Trail
from beaver_hooks.log import Log
from beaver_hooks.receipts.facts import Identify
from beaver_hooks.receipts.health import Health, from_json, to_json
from beaver_hooks.receipts.health_store import HealthBook
from beaver_hooks.receipts.receipt_store import ReceiptStore
from beaver_hooks.receipts.recorder import HOST, Recorder
from beaver_hostspecs import AuditUnavailable, Clock
from beaver_hostspecs.naming import type_name

SWITCH = "memory_switch"
"""The source of the host's own fault while it cannot read the memory switch."""

AUDIT = "audit"
"""The source of the host's own fault while the audit trail cannot be written."""

GLANCE = 0.1
"""Seconds that the event loop waits for the health of plugins while another process has locked it."""


@attrs.frozen(kw_only=True)
class Books:
    """The recorder, receipts and trail of a host. `trail` is `None` if it could not be opened."""

    recorder: Recorder
    receipts: ReceiptStore
    trail: Trail | None


def open_books(folder: Path, *, clock: Clock, sinks: Iterable[AuditSink], log: Log) -> Books:
    """Open the trail in `folder`, and a recorder that writes to it and to the further sinks."""
    writing = _Writing(log)
    try:
        trail: Trail | None = Trail.open(folder, on_state=writing.changed, clock=clock)
    except AuditUnavailable as error:
        trail, why = None, str(error)
    except (ImportError, OSError, ValueError) as error:  # no database engine, no such place, no such name
        trail, why = None, type_name(error)
    health = HealthBook(
        clock=clock,
        keep=(lambda plugin, each: trail.put_health(plugin, to_json(each))) if trail else lambda _, __: None,
        earlier=_Earlier(trail, log) if trail else dict,
        glance=_Earlier(trail, log, wait=GLANCE) if trail else dict,
    )
    recorder = Recorder(
        clock=clock,
        sinks=[*([trail] if trail else []), *sinks],
        health=health,
        identify=trail.identify if trail else _identify_without_trail(folder),
        log=log,
    )
    writing.recorder = recorder
    health.loaded(HOST)
    # The faults of an earlier process (a full queue, a trail that could not be written) ended with that process.
    for source in {AUDIT, *health[HOST].faults} - {SWITCH}:
        recorder.succeeded(HOST, source=source)
    if trail is None:
        recorder.degraded(HOST, source=AUDIT, category="unavailable")
        log.error("audit_unavailable", reason=why)
    receipts = ReceiptStore(trail=trail, identify=recorder.identify)
    return Books(recorder=recorder, receipts=receipts, trail=trail)


@attrs.define
class _Writing:
    """Changes the host's health when writing the trail fails or works again; called in the writer's thread."""

    log: Log
    recorder: Recorder | None = None

    def changed(self, category: str | None) -> None:
        if category is None:
            self.log.warning("audit_written_again")
        else:
            self.log.error("audit_not_written", category=category)
        if self.recorder is None:
            return
        if category is None:
            self.recorder.succeeded(HOST, source=AUDIT)
        else:
            self.recorder.degraded(HOST, source=AUDIT, category=category)


@attrs.define
class _Earlier:
    """Reads the stored health. Unreadable health is logged once and starts anew."""

    trail: Trail
    log: Log
    said: set[str] = attrs.field(factory=set)
    wait: float | None = None

    def __call__(self) -> Mapping[str, Health]:
        try:
            kept = self.trail.health(wait=self.wait)
        except (AuditUnavailable, ValueError) as error:
            self.complain("", reason=str(error))
            return {}
        return {name: health for name, body in kept.items() if (health := self.revived(name, body)) is not None}

    def revived(self, name: str, body: Mapping[str, object]) -> Health | None:
        try:
            return from_json(body)
        except (TypeError, ValueError) as error:
            self.complain(name, plugin=name, error=type_name(error))
            return None

    def complain(self, about: str, **fields: str) -> None:
        if about not in self.said:
            self.said.add(about)
            self.log.warning("health_unreadable", **fields)


def _identify_without_trail(folder: Path) -> Identify:
    """Return an `identify` with the key of the folder, or with a random key if the folder has none."""
    try:
        key = read_key(folder)
    except (AuditUnavailable, ValueError):  # no file can have that name
        key = None
    return partial(identify, secrets.token_bytes(32) if key is None else identifier_key(key.secret))
