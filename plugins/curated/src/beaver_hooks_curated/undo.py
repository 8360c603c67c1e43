"""Undoes one change and leaves all others. Pure."""

from collections.abc import Sequence

from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import Entries, Page, size, tidy
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.history import OUTSIDE, UNDO, Change
from beaver_hooks_curated.threat_scan import one_line

NOTHING_TO_UNDO = "There is no change to undo; `history` shows the changes."
_PREVIEW = 60


def last_standing(changes: Sequence[Change], entries: Entries) -> Change | None:
    """Return the last change that is in `entries` and was neither undone nor skipped, or `None`."""
    undone = {change.undoes for change in changes}
    for number, change in reversed(list(enumerate(changes))):
        # The first line only records the state at the beginning of the history, if it is an edit by hand.
        beginning = number == 0 and change.action == OUTSIDE and not change.before
        if change.action != UNDO and change.id not in undone and not beginning and _stands(change, entries):
            return change
    return None


def without(change: Change, page: Page) -> Edit:
    """Return the page without the change: added entries go, removed ones come back to their places.

    Raises:
        EditRefused: an added entry was changed again, or the result does not fit.
    """
    if gone := [entry for entry in change.added if entry not in page.entries]:
        raise _stuck(change, f"its entry {_quoted(gone[0])} was changed again later; edit the file by hand")
    entries = [entry for entry in page.entries if entry not in change.added]
    for entry in change.removed:
        entries.insert(change.before.index(entry), entry)
    kept = tidy(entries)
    # The limit is the tool's: an entry that the user had made longer comes back unchanged.
    if size(kept) > max(page.limit, page.size, size(change.before)):
        raise _stuck(
            change,
            f"with {_quoted(change.removed[0])} back it would be {size(kept):,} of {page.limit:,} characters",
            kind="overflow",
        )
    return Edit(entries=kept)


def _stuck(change: Change, why: str, *, kind: str = "stale") -> EditRefused:
    return EditRefused(
        f"Change {change.id} cannot be undone: {why}. It is skipped from now on: the next undo reverts the change"
        " before it.",
        kind=kind,
    )


def _quoted(entry: str) -> str:
    return f'"{one_line(entry, _PREVIEW)}"'


def _stands(change: Change, entries: Entries) -> bool:
    """Whether the entries show any of the change: a crash, or an edit by hand, may have kept it from the file."""
    return any(entry in entries for entry in change.added) or any(entry not in entries for entry in change.removed)
