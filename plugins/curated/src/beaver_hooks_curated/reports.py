"""Reports of curated memory to the audit trail and its health: ids and sizes, no text."""

from collections.abc import Iterable
from typing import Any

from beaver_hooks_curated.approvals import Staged
from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.history import Change
from beaver_hooks_curated.service import MemoryService, Taken
from beaver_hooks_curated.store import WriteResult
from beaver_hostspecs import Report

PLANE = "curated"
"""The plane of the outcomes of this plugin."""
NOT_KEPT = "curated_history_not_written"
EMPTIED = "curated_emptied_outside"
UNCONFIRMED = "unconfirmed_file"
UNREADABLE = "unreadable_file"


def tell_written(written: WriteResult, report: Report, service: MemoryService, user: str | None) -> None:
    """Report the changes of a write, the edits by others that it found, and whether the user's memory is well again."""
    tell_outside(written.outside, report)
    if written.change is not None:
        facts = {**written.change.facts(), "echoesReference": written.echoes, "evicted": len(written.edit.evicted)}
        report.event("curated_changed", **facts)
        if service.is_well(user):
            report.recovered()


def tell_outside(changes: Iterable[Change], report: Report) -> None:
    """Report edits that were made without the tool, with an event of its own for an emptied target."""
    for change in changes:
        report.event("curated_edited_outside", **change.facts())
        if change.empties:
            report.event(EMPTIED, change=change.id, target=change.target.value, entries_lost=len(change.before))


def tell_staged(staged: Staged, report: Report) -> None:
    """Report a write that waits for approval."""
    facts: dict[str, Any] = {"target": staged.target.value, "operations": len(staged.operations)}
    facts |= {"echoesReference": staged.echoes, "evicted": len(staged.evicted)}
    report.event("curated_staged", staged=staged.id, **facts)


def tell_taken(taken: Taken, report: Report) -> None:
    """Report the entries that the snapshot left out, the edits that it found, and the health of the memory."""
    tell_outside(taken.outside, report)
    for target, count in taken.snapshot.blocked:
        report.decision("threat", "blocked", f"{Target(target).file_name}:{count}")
    for target, shown, total in taken.snapshot.clipped:
        report.clipped(target.file_name, shown, total)
    for path in taken.unconfirmed:
        report.decision("origin", "left_out", path.name)
    troubles = {NOT_KEPT: taken.not_kept, EMPTIED: taken.emptied, UNCONFIRMED: taken.unconfirmed}
    for name, there in troubles.items():
        if there:
            report.degraded(name)
    if not any(troubles.values()):
        report.recovered()
