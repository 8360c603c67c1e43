"""Examination of each plugin's health, as an open host reports it or as it was stored."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.checks.findings import Finding, Level, ok, warning
from beaver_hooks.receipts.health import DAMAGE, LOSSES, UNCONFIRMED, UNREADABLE, Health, from_json
from beaver_hooks.receipts.recorder import HOST
from beaver_hooks.receipts.suspension import BLOCKED
from beaver_hostspecs import AuditUnavailable


def examine(name: str, health: Health, *, wanted: bool, degraded: Level) -> Finding:
    """Return the finding about a plugin's health.

    Args:
        name: the plugin.
        health: its health.
        wanted: whether the configuration has settings for it, so that it must not be unavailable.
        degraded: the level of the finding if it is degraded.
    """
    subject = HOST if name == HOST else f"plugin {name}"
    if health.state == "degraded":
        level = "problem" if UNREADABLE in health.faults.values() else degraded
        return Finding(subject=subject, level=level, text=str(health), remedy=_remedy(name, health))
    if health.state == "unavailable":
        remedy = f"fix the reason given, or add `{name}` to `plugins.disabled`"
        return Finding(subject=subject, level="problem" if wanted else "warning", text=str(health), remedy=remedy)
    return ok(subject, str(health))


def _remedy(name: str, health: Health) -> str:
    if UNCONFIRMED in health.faults.values():
        return "run: beaver trust --files"
    if UNREADABLE in health.faults.values():
        return f"`beaver memory {name} show` names the file and the remedy"
    if LOSSES in health.faults.values():
        return "`beaver doctor` names the database and the remedy"
    if DAMAGE in health.faults.values():
        return "`beaver memory check` names the rows and the remedy, and clears this when it finds none"
    if not health.suspension.active:
        return "see `beaver audit tail`, and fix the cause; the next success clears this"
    if health.suspension.category == BLOCKED:
        remedy = "the plugin must run its blocking code in a thread (`asyncio.to_thread`)"
    else:
        remedy = "see `beaver audit tail`, and fix the cause"
    return f"{remedy}; the host tries the hook again by itself, and at once after an update of the plugin"


def kept(folder: Path, wanted: Collection[str], absence: Absence) -> list[Finding]:
    """Return the health that the hosts of a state folder stored, without loading any plugin."""
    try:
        healths = TrailReader(folder).health()
    except AuditUnavailable:
        # The examination of the database reports the reason.
        return []
    return [_kept(name, body, absence, wanted=name in wanted) for name, body in healths.items()]


def _kept(name: str, body: Mapping[str, Any], absence: Absence, *, wanted: bool) -> Finding:
    try:
        health = from_json(body)
    except (TypeError, ValueError):
        return warning(f"plugin {name}", "its stored health cannot be read", "the next start records it again")
    gone = absence.text(name, health)
    if gone and health.state == "degraded" and absence.is_recent(name, health):
        return warning(f"plugin {name}", gone, _remedy(name, health))
    if gone:
        return ok(f"plugin {name}", gone)
    if not health.suspension.active and {*health.faults.values()} == {LOSSES}:
        return ok(f"plugin {name}", "its last start missed commits; until you accept the loss, a problem names it")
    return examine(name, health, wanted=wanted, degraded="problem")
