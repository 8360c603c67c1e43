"""What the service wants of the entries that the store finds: plans, as pure functions."""

from collections.abc import Sequence

import attrs

from beaver_hooks_curated.edits import Edit, Operation, apply
from beaver_hooks_curated.entries import Entries, Page, join, parse, size
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.history import is_large
from beaver_hooks_curated.merge import merge
from beaver_hooks_curated.threat_scan import clean


def action(operations: Sequence[Operation]) -> str:
    """Return what the history calls it."""
    return operations[0].action if len(operations) == 1 else "batch"


def undoable(page: Page, operations: Sequence[Operation], *, archive: bool, batch: bool | None) -> Edit:
    """Return what the operations make of the page, or refuse to take away what undo could not bring back.

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
    """Return what was approved, or refuse to let other entries make room than those that were shown."""
    edit = undoable(page, operations, archive=archive, batch=batch)
    if not set(edit.evicted) <= set(evicted):
        raise EditRefused("The memory has changed, and other entries would have to make room now.", kind="stale")
    return edit


def pinned(edit: Edit, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations with each `old_text` as the whole entry that it means now."""
    meant = dict((*edit.replaced, *edit.removed))
    return tuple(
        attrs.evolve(operation, old_text=meant[number], exact=True) if number in meant else operation
        for number, operation in enumerate(operations, 1)
    )


def by_hand(page: Page, *, base: Entries, text: Entries) -> Edit:
    """Return what a person made of `base`, put together with what is there now.

    Raises:
        EditRefused: it is too long.
    """
    known = {*base, *page.entries}
    # Cleaning may bring a dividing line to light.
    cleaned = parse(join(entry if entry in known else clean(entry) for entry in text))
    merged = merge(base, page.entries, cleaned)
    if size(merged) > page.limit and size(merged) > page.size:
        raise EditRefused(
            f"This would be {size(merged):,} of {page.limit:,} characters; shorten it and save again.",
            kind="overflow",
        )
    return Edit(entries=merged)
