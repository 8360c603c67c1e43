"""The answers of the tool to the model. Pure.

A success names the changed entries and never repeats the others: a model that sees those writes them again. A
failure shows them where the model needs them to try again, and never the text of a blocked one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from beaver_hooks_curated.approvals import Staged
from beaver_hooks_curated.edits import Edit, Operation
from beaver_hooks_curated.entries import Entries, Page, Target
from beaver_hooks_curated.errors import EditRefused, MemoryUnconfirmed
from beaver_hooks_curated.snapshot import shown_entries, shown_entry
from beaver_hooks_curated.store import WriteResult
from beaver_hooks_curated.threat_scan import threats

Answer = dict[str, Any]

NOTE = "Done; do not repeat this call. The system prompt shows it from the next run on."
GIVE_UP = (
    "Stop retrying: this write has failed too often in this turn. Answer the user now, and mention that the memory "
    "could not be updated."
)
_ECHOED = frozenset({"overflow", "no_match", "missing_old_text"})
_PREVIEW = 80


def success(written: WriteResult, operations: Sequence[Operation], *, batch: bool) -> Answer:
    """Return the answer for an edit that was made; in a list, each operation is named by its number."""
    edit, page = written.edit, written.page
    answer: Answer = {
        "success": True,
        "done": True,
        "target": page.target.value,
        "usage": page.usage,
        "entry_count": len(page.entries),
        "message": _message(edit, operations, batch=batch),
        "note": NOTE,
    }
    answer.update(_old(page, "replaced", edit.replaced, single=not batch))
    answer.update(_old(page, "removed", edit.removed, single=not batch))
    if edit.evicted:
        answer["evicted"] = len(edit.evicted)
        answer["evicted_entries"] = [_preview(page.target, page.entries, entry) for entry in edit.evicted]
        answer["archive"] = "ARCHIVE.jsonl"
    return answer


def staged(waiting: Staged) -> Answer:
    """Return the answer for an edit that waits for approval."""
    answer: Answer = {
        "success": True,
        "staged": True,
        "target": waiting.target.value,
        "pending_id": waiting.id,
        "message": "The write waits for the user's approval and is not in memory yet; do not repeat it.",
    }
    if waiting.evicted:
        answer["would_evict"] = len(waiting.evicted)
        answer["evicted_entries"] = [_preview(waiting.target, (), entry) for entry in waiting.evicted]
    return answer


def failure(error: EditRefused, page: Page | None, *, batch: bool) -> Answer:
    """Return the answer for an edit that was refused; nothing was written.

    Args:
        error: why.
        page: the entries in the file, or `None` where they do not matter.
        batch: the edit was one of several operations, so the answer does not show the entries.
    """
    answer: Answer = {"success": False, "error": str(error)}
    if page is None:
        return answer
    answer["usage"] = page.usage
    if error.matches:
        answer["matches"] = [_preview(page.target, page.entries, entry) for entry in error.matches]
    if error.kind in _ECHOED and not batch:
        answer["current_entries"] = shown_entries(page)
    return answer


def unconfirmed(error: MemoryUnconfirmed) -> Answer:
    """Return the answer for a memory that the user has to confirm first; it is neither shown nor written."""
    return {"success": False, "done": True, "error": f"Nothing was written. {error}"}


def terminal() -> Answer:
    """Return the answer that ends a row of failures."""
    return {"success": False, "done": True, "error": GIVE_UP}


def _message(edit: Edit, operations: Sequence[Operation], *, batch: bool) -> str:
    if batch:
        return f"Applied {len(operations)} operation{'s' if len(operations) > 1 else ''}" + (
            f"; {edit.duplicates} added nothing new." if edit.duplicates else "."
        )
    if edit.duplicates and operations[0].action == "add":
        return "This entry exists already; nothing was added."
    return {"add": "Entry added.", "replace": "Entry replaced.", "remove": "Entry removed."}[operations[0].action]


def _old(page: Page, word: str, entries: Sequence[tuple[int, str]], *, single: bool) -> Mapping[str, Any]:
    """Return the entries that an edit replaced or removed, so that the model sees which ones it hit."""
    if not entries:
        return {}
    if single:
        return {f"{word}_entry": shown_entry(page.target, *entries[0])}
    return {f"{word}_entries": {str(number): shown_entry(page.target, number, each) for number, each in entries}}


def _preview(target: Target, entries: Entries, entry: str) -> str:
    shown = shown_entry(target, entries.index(entry) + 1 if entry in entries else 0, entry)
    return shown if threats(entry) or len(shown) <= _PREVIEW else shown[: _PREVIEW - 3] + "..."
