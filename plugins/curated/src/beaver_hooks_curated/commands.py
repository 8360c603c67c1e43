"""The user's commands for curated memory, under `/memory curated`, and the texts that they show."""

import asyncio
from collections.abc import Callable
from functools import partial

from beaver_hooks_curated.approvals import Staged
from beaver_hooks_curated.entries import MOST_ENTRIES, Page, Target, handle
from beaver_hooks_curated.errors import EditRefused, MemoryUnconfirmed
from beaver_hooks_curated.history import Change
from beaver_hooks_curated.reports import tell_outside, tell_written
from beaver_hooks_curated.service import MemoryService
from beaver_hooks_curated.threat_scan import clean, one_line, threats
from beaver_hostspecs import Caller, Command, CommandContext, Report

WITH_ID = frozenset({"approve", "reject"})
"""The commands that take the id of a waiting write; the others take no words."""
FORGET = "erase removed entries from the history and the archive"

_SHOWN = 20
_PREVIEW = 100


class CuratedCommands:
    """The commands. Each is a plain function that may wait for a disk; the host runs them through a thread.

    A failure is raised as a `CuratedError`, for the host to record and for its front end to show.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    def all(self) -> tuple[Command, ...]:
        """Return them as the host offers them."""
        table: tuple[tuple[str, str, Callable[..., str], Callable[[Caller], bool]], ...] = (
            ("show", "the entries of MEMORY.md and USER.md", self.show, self._may_read),
            ("history", "the last changes", self.history, self._may_read),
            ("undo", "undo the last change", self.undo, self._may_write),
            ("pending", "writes that wait for approval", self.pending, self._may_read),
            ("approve", "approve a waiting write: approve ID", self.approve, self._may_write),
            ("reject", "reject a waiting write: reject ID", self.reject, self._may_write),
            ("forget-history", FORGET, self.forget_history, self._may_write),
        )
        return tuple(
            Command(name=name, summary=summary, run=partial(_run, name, run), allows=allows)
            for name, summary, run, allows in table
        )

    def show(self, context: CommandContext, _report: Report) -> str:
        """Show the entries that the caller may read, including those that look like a threat."""
        return "\n\n".join(self._shown_or_why(target, context.user) for target in self._service.readable(context))

    def history(self, context: CommandContext, _report: Report) -> str:
        """Show the last changes, the newest first."""
        changes = self._service.history(context.user, self._service.readable(context))
        if not changes:
            return "Nothing was changed yet."
        return "\n".join(_change(change) for change in reversed(changes[-_SHOWN:]))

    def undo(self, context: CommandContext, report: Report) -> str:
        """Undo the last change that still stands."""
        # Reported before a refusal is possible: by then these edits are in the history.
        targets = self._service.writable(context)
        tell_outside(self._service.adopt(context.user, targets), report)
        written = self._service.undo(context.user, targets)
        tell_written(written, report, self._service, context.user)
        undone = written.change.undoes if written.change else None
        return f"Change {undone} was undone. {written.page.target.file_name}: {written.page.usage}."

    def pending(self, context: CommandContext, _report: Report) -> str:
        """Show the writes that wait for approval."""
        waiting = self._service.pending(context.user, self._service.readable(context))
        return "\n".join(_staged(each) for each in waiting) if waiting else "No write waits for approval."

    def approve(self, staged_id: str, context: CommandContext, report: Report) -> str:
        """Make a waiting write."""
        written = self._service.approve(staged_id, context.user, self._service.writable(context))
        report.event("curated_approved", staged=staged_id)
        tell_written(written, report, self._service, context.user)
        evicted = len(written.edit.evicted)
        room = f" {_counted(evicted, 'entry', 'entries')} moved to ARCHIVE.jsonl to make room." if evicted else ""
        return f"Approved. {written.page.target.file_name}: {written.page.usage}.{room}"

    def reject(self, staged_id: str, context: CommandContext, report: Report) -> str:
        """Drop a waiting write."""
        rejected = self._service.reject(staged_id, context.user, self._service.writable(context))
        report.event("curated_rejected", staged=rejected.id, target=rejected.target.value)
        return "Rejected; nothing was written."

    def forget_history(self, context: CommandContext, report: Report) -> str:
        """Drop removed entries from history and archive."""
        forgotten = self._service.forget_history(context.user, self._service.writable(context))
        tell_outside(forgotten.outside, report)
        report.event("curated_history_forgotten", folders=forgotten.folders)
        where = f" ({_counted(forgotten.folders, 'folder', 'folders')})" if self._service.settings.per_user else ""
        return (
            f"Removed entries were erased from the history and the archive{where}. Earlier changes cannot be undone"
            " any more."
        )

    def _may_read(self, caller: Caller) -> bool:
        return bool(self._service.readable(caller))

    def _may_write(self, caller: Caller) -> bool:
        return bool(self._service.writable(caller))

    def _shown_or_why(self, target: Target, user: str | None) -> str:
        try:
            return self._shown(self._service.page(target, user))
        except MemoryUnconfirmed as error:
            return f"{target.file_name}: not shown. {error}"

    def _shown(self, page: Page) -> str:
        lines = [f"{page.target.file_name} [{page.usage}]"]
        for number, entry in enumerate(page.entries[:MOST_ENTRIES], 1):
            found = threats(entry)
            mark = f" [not shown to the model: {', '.join(found)}; remove it with {handle(entry)}]" if found else ""
            lines.append(f"{number}.{mark} {clean(entry)}")
        if (more := len(page.entries) - MOST_ENTRIES) > 0:
            lines.append(f"... and {more:,} more entries, in the file")
        return "\n".join(lines if page.entries else [*lines, "(empty)"])


async def _run(
    name: str, run: Callable[..., str], words: tuple[str, ...], context: CommandContext, report: Report
) -> str:
    """Run a command in a thread. Other words than it takes are refused, because they would be ignored."""
    if name in WITH_ID and len(words) != 1:
        raise EditRefused(f"Name one waiting write: {name} ID. `pending` lists them.", kind="invalid")
    if name not in WITH_ID and words:
        raise EditRefused(f"`{name}` takes no words; nothing was done. Write `{name}` alone.", kind="invalid")
    return await asyncio.to_thread(run, *words, context, report)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _change(change: Change) -> str:
    undoes = f" {change.undoes}" if change.undoes else ""
    lines = [f"{change.id}  {change.when:%Y-%m-%d %H:%M} UTC  {change.target.value}  {change.action}{undoes}"]
    lines += [f"  + {one_line(entry, _PREVIEW)}" for entry in change.added]
    lines += [f"  - {one_line(entry, _PREVIEW)}" for entry in change.removed]
    return "\n".join(lines)


def _staged(staged: Staged) -> str:
    lines = [f"{staged.id}  {staged.when:%Y-%m-%d %H:%M} UTC  {staged.target.value}"]
    for each in staged.operations:
        lines += [f"  - {one_line(each.old_text, _PREVIEW)}"] if each.old_text else []
        lines += [f"  + {clean(each.content)}"] if each.content else []
    lines += [f"  > {clean(entry)} (makes room, goes to ARCHIVE.jsonl)" for entry in staged.evicted]
    return "\n".join(lines)
