"""Puts together what two writers made of the same entries. Pure.

Nobody who edits a file by hand takes our lock. So what is found may rest on an older state than the last one
that was acknowledged. What came and went since then is known from the history.
"""

from collections.abc import Iterable

from beaver_hooks_curated.entries import Entries, tidy


def merge(base: Entries, ours: Entries, theirs: Entries) -> Entries:
    """Return `theirs` with what we changed since `base`: our removals removed, our additions at the end.

    What both changed stays as they have it, beside ours: nothing that anybody wrote is lost.
    """
    gone = set(base) - set(ours)
    kept = [entry for entry in theirs if entry not in gone]
    return tidy([*kept, *(entry for entry in ours if entry not in base)])


def restore(known: Entries, found: Entries, recent: Iterable[tuple[Entries, Entries]]) -> Entries:
    """Return what was found, with the changes that its writer cannot have seen.

    Args:
        known: the last state that was acknowledged.
        found: what is in the file, written by somebody else.
        recent: before and after of each change that was made moments before the file was written.
    """
    changes = list(recent)
    if not changes:
        return found
    return merge(changes[0][0], known, found)
