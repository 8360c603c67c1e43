"""Puts together what two writers made of the same entries. Pure.

Nobody who edits a file by hand takes our lock. So what is found may rest on an older state than the last one
that was acknowledged. What came and went since then is known from the history.
"""

from collections.abc import Sequence

from beaver_hooks_curated.entries import Entries, tidy
from beaver_hooks_curated.history import OUTSIDE, Change


def merge(base: Entries, ours: Entries, theirs: Entries) -> Entries:
    """Return `theirs` with what we changed since `base`: our removals removed, our additions at the end.

    What both changed stays as they have it, beside ours: nothing that anybody wrote is lost.
    """
    gone = set(base) - set(ours)
    kept = [entry for entry in theirs if entry not in gone]
    return tidy([*kept, *(entry for entry in ours if entry not in base)])


def restore(found: Entries, recent: Sequence[Change]) -> Entries:
    """Return what a person wrote, with the changes of ours that the person cannot have seen.

    A change that a person made is never made again: what they replaced stays replaced.

    Args:
        found: the entries in the file, written by a person.
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
    """Return how many of the changes the writer has seen: the last of ours that is there, and all before it.

    Text that is put after the last entry, as a shell does, or that corrects an entry makes a longer one of it. What a
    person wrote says nothing: they know their own text.
    """
    for count in range(len(recent), 0, -1):
        change = recent[count - 1]
        if change.action != OUTSIDE and change.added and _shows(change, found):
            return count
    return 0


def _shows(change: Change, found: Entries) -> bool:
    known = frozenset(change.before)
    return any(entry.startswith(change.added) for entry in found if entry not in known)
