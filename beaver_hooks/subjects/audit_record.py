"""Records in the audit trail that the data of a person was exported or erased: counts, and the keyed hash of the id."""

from datetime import datetime
from pathlib import Path

from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.audit.trail import Trail
from beaver_hooks.subjects.holders import Summary
from beaver_hostspecs import AuditUnavailable, Fact, Subject

EXPORTED, ERASED = "subject_exported", "subject_erased"

NEWEST = 100_000
"""Events that are looked at for erasures."""


def record(folder: Path, name: str, subject: Subject, summary: Summary, *, now: datetime) -> str:
    """Write the event; return why that could not be done, or an empty text.

    A folder that does not exist stays so: nothing is stored there.
    """
    if not folder.is_dir():
        return ""
    left = sum(sum(each.left.values()) for each in summary.reports.values())
    counts: dict[str, Fact | list[Fact]] = {
        "count": summary.count,
        "left": left,
        "holders": [*summary.reports],
        "failed": [*summary.failures],
    }
    try:
        trail = Trail.open(folder)
        try:
            facts = {"subject": trail.identify(subject.user), **counts}
            trail.append(AuditEvent(name=name, at=now, facts=facts))
            trail.flush()
        finally:
            trail.close()
    except AuditUnavailable as error:
        return f"The audit trail has no record of this: {error}"
    return ""


def erased_since(folder: Path, moment: datetime) -> int:
    """Return of how many persons data was erased after a moment, by the newest events; 0 without a readable trail."""
    try:
        events = TrailReader(folder).tail(NEWEST)
    except AuditUnavailable:
        return 0
    return len({each.facts["subject"] for each in events if each.name == ERASED and each.at > moment})
