"""How each plugin is, as a host says it or as it was kept."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from beaver_hooks.audit.reading import TrailReader
from beaver_hooks.cli.examining.findings import Finding, Level, ok, warning
from beaver_hooks.record.health import UNCONFIRMED, Health, from_json
from beaver_hooks.record.recorder import HOST
from beaver_hooks.registry.catalog import installed
from beaver_hostspecs import AuditUnavailable


def examine(name: str, health: Health, *, wanted: bool, degraded: Level) -> Finding:
    """Return how a plugin is.

    Args:
        name: the plugin.
        health: its health.
        wanted: whether the configuration has settings for it, so that it must not be unavailable.
        degraded: how bad it is that it is degraded.
    """
    subject = HOST if name == HOST else f"plugin {name}"
    if health.state == "degraded":
        remedy = "see `beaver audit tail`, and mend what failed; the next success clears it"
        if UNCONFIRMED in health.faults.values():
            remedy = "run: beaver trust --files"
        return Finding(subject=subject, level=degraded, text=str(health), remedy=remedy)
    if health.state == "unavailable":
        remedy = f"mend what it says, or name `{name}` in `plugins.disabled`"
        return Finding(subject=subject, level="problem" if wanted else "warning", text=str(health), remedy=remedy)
    return ok(subject, str(health))


def kept(folder: Path, wanted: Collection[str]) -> list[Finding]:
    """Return the health that the hosts of a state folder kept, without loading any plugin."""
    try:
        healths = TrailReader(folder).health()
    except AuditUnavailable:
        # Whoever examines the database says why.
        return []
    there = {HOST, *installed()}
    return [_kept(name, body, wanted=name in wanted, there=name in there) for name, body in healths.items()]


def _kept(name: str, body: Mapping[str, Any], *, wanted: bool, there: bool) -> Finding:
    try:
        health = from_json(body)
    except (TypeError, ValueError):
        return warning(f"plugin {name}", "what was kept of its health cannot be read", "the next start begins anew")
    if there or health.state == "degraded":
        return examine(name, health, wanted=wanted, degraded="problem" if there else "warning")
    return ok(f"plugin {name}", "is not installed any more")
