"""Records in the audit trail that the data of a person was exported or erased: counts, and the keyed hash of the id."""

import os
from datetime import datetime
from pathlib import Path

from beaver_hooks.audit.database import DATABASE
from beaver_hooks.audit.events import AuditEvent
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.audit.trail import Trail
from beaver_hooks.subjects.holders import Summary
from beaver_hostspecs import AuditUnavailable, Fact, Subject

EXPORTED, ERASED = "subject_exported", "subject_erased"


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
        "unasked": [*summary.unasked],
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
    """Return of how many persons data was erased after a moment, by the audit trail; 0 where there is none.

    Raises:
        AuditUnavailable: the trail cannot be read.
    """
    if not os.path.lexists(folder / DATABASE):
        return 0
    events = TrailReader(folder).named(ERASED, after=moment)
    return len({each.facts.get("subject") for each in events if each.facts.get("count") or each.facts.get("failed")})
