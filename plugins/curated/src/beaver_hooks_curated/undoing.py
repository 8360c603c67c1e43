"""Takes a change back without taking anything else back. Pure."""

from collections.abc import Sequence

from beaver_hooks_curated.editing import Edit
from beaver_hooks_curated.entries import Entries, Page, size, tidy
from beaver_hooks_curated.errors import EditRefused, UnknownChange
from beaver_hooks_curated.history import OUTSIDE, UNDO, Change


def last_standing(changes: Sequence[Change], entries: Entries) -> Change:
    """Return the last change that is in `entries` and was not taken back.

    Raises:
        UnknownChange: there is none.
    """
    undone = {change.undoes for change in changes}
    for change in reversed(changes):
        taken_back = change.action == UNDO or change.id in undone
        if not taken_back and not _is_beginning(change) and _stands(change, entries):
            return change
    raise UnknownChange("There is no change to undo; the history shows what is kept.")


def without(change: Change, page: Page) -> Edit:
    """Return the page without the change: what it brought goes, what it took away comes back to its place.

    Raises:
        EditRefused: what it brought was changed again, or the result does not fit.
    """
    if not set(change.added) <= set(page.entries):
        raise EditRefused(f"Change {change.id} was changed again since; edit the entry instead.", kind="stale")
    entries = [entry for entry in page.entries if entry not in change.added]
    for entry in change.removed:
        entries.insert(change.before.index(entry), entry)
    kept = tidy(entries)
    if size(kept) > page.limit and size(kept) > page.size:
        raise EditRefused(
            f"Undoing change {change.id} would be {size(kept):,} of {page.limit:,} characters; remove entries first.",
            kind="overflow",
        )
    return Edit(entries=kept)


def _is_beginning(change: Change) -> bool:
    """Whether it only says what was there when the history began."""
    return change.action == OUTSIDE and not change.before


def _stands(change: Change, entries: Entries) -> bool:
    """Whether anything of it is to be seen: a crash, or a hand, may have kept it from the file."""
    return any(entry in entries for entry in change.added) or any(entry not in entries for entry in change.removed)
