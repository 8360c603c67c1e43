"""Merges the changes of two writers to the same entries. Pure.

A user who edits a file by hand does not take the lock. So the file may rest on an older state than the last
acknowledged one. The history holds the changes since then.
"""

from collections.abc import Sequence

from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import Entries, Page, join, parse, size, tidy
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.history import OUTSIDE, Change
from beaver_hooks_curated.threat_scan import clean


def by_hand(page: Page, *, base: Entries, text: Entries) -> Edit:
    """Return the user's edit of `base`, merged with the entries that the file holds now.

    Raises:
        EditRefused: it is too long.
    """
    known = {*base, *page.entries}
    # Cleaning may reveal a dividing line.
    cleaned = parse(join(entry if entry in known else clean(entry) for entry in text))
    merged = merge(base, page.entries, cleaned)
    if size(merged) > page.limit and size(merged) > page.size:
        raise EditRefused(
            f"This would be {size(merged):,} of {page.limit:,} characters; shorten it and save again.",
            kind="overflow",
        )
    return Edit(entries=merged)


def merge(base: Entries, ours: Entries, theirs: Entries) -> Entries:
    """Return `theirs` with the changes from `base` to `ours`: removals removed, additions at the end.

    An entry that both changed stays in both forms, so no text of either writer is lost.
    """
    gone = set(base) - set(ours)
    kept = [entry for entry in theirs if entry not in gone]
    return tidy([*kept, *(entry for entry in ours if entry not in base)])


def restore(found: Entries, recent: Sequence[Change]) -> Entries:
    """Return the entries that the user wrote, with the changes of the plugin that the user cannot have seen.

    A change by the user is never made again, so an entry that the user replaced stays replaced.

    Args:
        found: the entries in the file, written by the user.
        recent: the changes that were made moments before the file was written, the oldest first.
    """
    ours: dict[str, bool] = {}
    for change in recent[_seen(found, recent) :]:
        if change.action == OUTSIDE and not change.slipped:
            for entry in (*change.added, *change.removed):
                ours.pop(entry, None)
        else:
            ours |= {**dict.fromkeys(change.removed, False), **dict.fromkeys(change.added, True)}
    kept = [entry for entry in found if ours.get(entry, True)]
    return tidy([*kept, *(entry for entry, added in ours.items() if added)])


def _seen(found: Entries, recent: Sequence[Change]) -> int:
    """Return how many of the changes the writer has seen: the last one of the plugin in `found`, and all before it.

    Text after the last entry, as a shell appends it, or a correction makes that entry longer. A change by the user
    proves nothing: the user knows the text without reading the file.
    """
    for count in range(len(recent), 0, -1):
        change = recent[count - 1]
        if change.action != OUTSIDE and change.added and _shows(change, found):
            return count
    return 0


def _shows(change: Change, found: Entries) -> bool:
    known = frozenset(change.before)
    return any(entry.startswith(change.added) for entry in found if entry not in known)
