"""Plans, as pure functions: the edits that the service makes of the entries that the store finds."""

from collections.abc import Sequence

import attrs

from beaver_hooks_curated.edits import Edit, Operation, apply
from beaver_hooks_curated.entries import Entries, Page, join, parse, size
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.history import is_large
from beaver_hooks_curated.merge import merge
from beaver_hooks_curated.threat_scan import clean


def action(operations: Sequence[Operation]) -> str:
    """Return the action of the operations in the history."""
    return operations[0].action if len(operations) == 1 else "batch"


def undoable(page: Page, operations: Sequence[Operation], *, archive: bool, batch: bool | None) -> Edit:
    """Return the edit of the operations, or refuse one that undo could not revert.

    Raises:
        EditRefused: see `apply`; or the file is so large that the history cannot hold it.
    """
    edit = apply(page, operations, archive=archive, batch=batch)
    if is_large(page.entries) and not set(page.entries) <= set(edit.entries):
        raise EditRefused(
            "The file is so large that undo could not restore what this removes; the user must shorten it by hand."
            " Nothing was written.",
            kind="hand_grown",
        )
    return edit


def approved(page: Page, *, operations: Sequence[Operation], archive: bool, evicted: Entries, batch: bool) -> Edit:
    """Return the approved edit, or refuse it where other entries would make room than those the user saw."""
    edit = undoable(page, operations, archive=archive, batch=batch)
    if not set(edit.evicted) <= set(evicted):
        raise EditRefused("The memory has changed, and other entries would have to make room now.", kind="stale")
    return edit


def pinned(edit: Edit, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations with each `old_text` as the whole entry that it matches now."""
    meant = dict((*edit.replaced, *edit.removed))
    return tuple(
        attrs.evolve(operation, old_text=meant[number], exact=True) if number in meant else operation
        for number, operation in enumerate(operations, 1)
    )


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
