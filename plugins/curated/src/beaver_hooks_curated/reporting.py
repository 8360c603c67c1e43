"""What is said of curated memory in the audit trail: ids and sizes, no text."""

from collections.abc import Iterable

from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.history import Change
from beaver_hooks_curated.service import Taken
from beaver_hooks_curated.store import Written
from beaver_hostspecs import Report

PLANE = "curated"
"""What the outcomes of this plugin are about."""


def tell_written(written: Written, report: Report, *, echoes: bool = False) -> None:
    """Say what a write changed, and what others had changed.

    Args:
        written: the write.
        report: where to say it.
        echoes: the content repeats what was recalled for this turn.
    """
    tell_outside(written.outside, report)
    if written.change is not None:
        facts = {**written.change.facts(), "echoesReference": echoes, "evicted": len(written.edit.evicted)}
        report.event("curated_changed", **facts)


def tell_outside(changes: Iterable[Change], report: Report) -> None:
    """Say what somebody changed without the tool; loudest where nothing is left."""
    for change in changes:
        report.event("curated_edited_outside", **change.facts())
        if change.before and not change.after:
            report.event("curated_emptied_outside", change=change.id, target=change.target.value,
                         entries_lost=len(change.before))  # fmt: skip


def tell_taken(taken: Taken, report: Report) -> None:
    """Say what the snapshot could not show, and what was found on the way to it."""
    tell_outside(taken.outside, report)
    for target, count in taken.snapshot.blocked:
        report.decision("threat", "blocked", f"{count} of {Target(target).file_name}")
    for target, shown, total in taken.snapshot.clipped:
        report.clipped(target.file_name, shown, total)
    if taken.not_kept:
        report.degraded("curated_history_not_written")
