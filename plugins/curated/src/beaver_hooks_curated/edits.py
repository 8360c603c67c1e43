"""Edits entries: add, replace, remove, one or several at once, all or nothing. Pure."""

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import TypeVar

import attrs
from attrs import field
from attrs.validators import instance_of, optional

from beaver_hooks_curated.entries import DELIMITER, MOST_ENTRIES, Entries, Page, handle, holds_delimiter, size
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.threat_scan import clean, threats

T = TypeVar("T")

ACTIONS = ("add", "replace", "remove")
HEADROOM = 10
"""A tenth of the limit is freed when the oldest entries make room, so that not every addition evicts entries."""


@attrs.frozen(kw_only=True)
class Operation:
    """One step of an edit.

    Attributes:
        exact: `old_text` is a whole entry and fits nothing else.
    """

    action: str = field(validator=instance_of(str))
    content: str | None = field(default=None, repr=False, validator=optional(instance_of(str)))
    old_text: str | None = field(default=None, repr=False, validator=optional(instance_of(str)))
    exact: bool = False


@attrs.frozen(kw_only=True)
class Edit:
    """The result of an edit.

    Attributes:
        entries: the final state.
        replaced: replaced entries, with the number of the operation, from 1.
        removed: removed entries, likewise.
        duplicates: how many additions were in the file already.
        evicted: entries that made room, the oldest first.
    """

    entries: Entries = field(repr=False)
    replaced: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    removed: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    duplicates: int = 0
    evicted: Entries = field(default=(), repr=False)


def prepare(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations with their contents cleaned, after the checks that need no page.

    Raises:
        EditRefused: something is missing, holds the delimiter, or looks like a threat.
    """
    return tuple(_named(number, len(operations), each, _prepared) for number, each in enumerate(operations, 1))


def apply(page: Page, operations: Sequence[Operation], *, archive: bool = False, batch: bool | None = None) -> Edit:
    """Return the result of the prepared operations on the page. Only the final state must keep the limit.

    Args:
        page: the current entries.
        operations: the steps, in order.
        archive: let the oldest entries make room instead of refusing.
        batch: the operations came as a list; several always do.

    Raises:
        EditRefused: an operation matches no entry or several, changes an entry that only the user may change, the
            result does not fit, or a batch would leave no entry.
    """
    edit = Edit(entries=page.entries)
    for number, each in enumerate(operations, 1):
        edit = _named(number, len(operations), each, partial(_step, page, edit, number))
    if (batch or len(operations) > 1) and page.entries and not edit.entries:
        raise EditRefused(
            "This batch would remove all entries; remove the last entry in a call of its own.", kind="emptied"
        )
    if archive:
        edit = _with_room(page, edit, fresh={each.content for each in operations})
    _check_size(page, edit.entries)
    return edit


def action_of(operations: Sequence[Operation]) -> str:
    """Return the action of the operations in the history."""
    return operations[0].action if len(operations) == 1 else "batch"


def find(entries: Sequence[str], operation: Operation) -> int:
    """Return the index of the one entry that `old_text` matches.

    A whole entry comes before any part of one. The handle of a blocked entry counts as its text.

    Raises:
        EditRefused: there is none, or there are several.
    """
    wanted = (operation.old_text or "").strip()
    if wanted in entries:
        return entries.index(wanted)
    hits = [] if operation.exact else [index for index, entry in enumerate(entries) if wanted in entry]
    if not hits and not operation.exact:
        hits = [index for index, entry in enumerate(entries) if handle(entry) == wanted and threats(entry)]
    if not hits:
        raise EditRefused("No entry matches old_text.", kind="no_match")
    if len(hits) > 1:
        matches = tuple(entries[index] for index in hits)
        raise EditRefused("Several entries match old_text; quote a longer part of the entry.", kind="ambiguous",
                          matches=matches)  # fmt: skip
    return hits[0]


def _step(page: Page, edit: Edit, number: int, operation: Operation) -> Edit:
    """Return an edit with one more operation."""
    content, entries = operation.content or "", list(edit.entries)
    if operation.action == "add":
        if content in entries:
            return attrs.evolve(edit, duplicates=edit.duplicates + 1)
        return attrs.evolve(edit, entries=(*entries, content))
    index = find(entries, operation)
    old = entries.pop(index)
    _check_author(page, old, operation)
    if operation.action == "remove":
        return attrs.evolve(edit, entries=tuple(entries), removed=(*edit.removed, (number, old)))
    edit = attrs.evolve(edit, replaced=(*edit.replaced, (number, old)))
    if content in entries:
        # The new text is there already: one of the two goes.
        return attrs.evolve(edit, entries=tuple(entries), duplicates=edit.duplicates + 1)
    entries.insert(index, content)
    return attrs.evolve(edit, entries=tuple(entries))


def _check_author(page: Page, entry: str, operation: Operation) -> None:
    """Refuse to change an entry beyond the limit, which the user wrote; a hostile one may go by its handle."""
    if len(entry) > page.limit and (operation.old_text or "").strip() != handle(entry):
        raise EditRefused(
            f"This entry has {len(entry):,} characters, the limit is {page.limit:,}: the user wrote it, and only"
            " the user can change it, in the file. Nothing was written.",
            kind="hand_grown",
        )


def _prepared(operation: Operation) -> Operation:
    if operation.action not in ACTIONS:
        raise EditRefused(f"Unknown action; use one of {', '.join(ACTIONS)}.", kind="invalid")
    if operation.action != "add" and not (operation.old_text or "").strip():
        raise EditRefused(
            f"old_text is missing; quote a part of the entry to {operation.action} and try again.",
            kind="missing_old_text",
        )
    if operation.action == "remove":
        return operation
    return attrs.evolve(operation, content=_content(operation.content))


def _content(content: str | None) -> str:
    cleaned = clean(content or "").strip()
    if not cleaned:
        raise EditRefused("content is empty; use remove to take an entry out.", kind="invalid")
    if holds_delimiter(cleaned):
        raise EditRefused(
            "content holds a line with only a section sign, which separates entries; add two entries instead.",
            kind="invalid",
        )
    # On the original text: cleaning removes the signs of some threats.
    if found := threats(content or ""):
        raise EditRefused(
            f"content looks like a threat ({', '.join(found)}) and would be in every system prompt; nothing was"
            " written. State the fact in plain words.",
            kind="threat",
        )
    return cleaned


def _named(number: int, total: int, operation: Operation, step: Callable[[Operation], T]) -> T:
    """Do one step; in a batch, the error names the step that failed."""
    try:
        return step(operation)
    except EditRefused as error:
        if total == 1:
            raise
        action = operation.action if operation.action in ACTIONS else "unknown action"
        text = f"Operation {number} ({action}): {error}"
        raise EditRefused(text, kind=error.kind, matches=error.matches) from None


def _with_room(page: Page, edit: Edit, *, fresh: Container[str | None]) -> Edit:
    """Return an edit without the oldest entries, as many as must go until the fresh ones fit with some headroom."""
    total, count = size(edit.entries), len(edit.entries)
    too_long, too_many = total > max(page.limit, page.size), count > max(MOST_ENTRIES, len(page.entries))
    goal = page.limit - page.limit // HEADROOM if too_long else total
    goal_count = MOST_ENTRIES - MOST_ENTRIES // HEADROOM if too_many else count
    kept, evicted = [], []
    for entry in edit.entries:
        # An entry that the user wrote beyond the limit stays: it could not be restored from the archive.
        if (total <= goal and count <= goal_count) or entry in fresh or len(entry) > page.limit:
            kept.append(entry)
            continue
        total -= len(entry) + len(DELIMITER)
        count -= 1
        evicted.append(entry)
    return attrs.evolve(edit, entries=tuple(kept), evicted=tuple(evicted))


def _check_size(page: Page, entries: Sequence[str]) -> None:
    if len(entries) > max(MOST_ENTRIES, len(page.entries)):
        raise EditRefused(
            f"This would be {len(entries):,} entries of at most {MOST_ENTRIES:,}. Put several short ones into one, or "
            "remove some, then add.",
            kind="overflow",
        )
    # A file that the user made too long may shrink step by step.
    total = size(entries)
    if total <= page.limit or total < page.size or tuple(entries) == page.entries:
        return
    longest = max((len(entry) for entry in entries if entry not in page.entries), default=0)
    if longest > page.limit:
        text = f"This entry alone has {longest:,} characters, the limit is {page.limit:,}; shorten it."
    else:
        text = (
            f"This would be {total:,} of {page.limit:,} characters. Replace or remove entries first (one batch of "
            "`operations` can do all of it), then add."
        )
    raise EditRefused(text, kind="overflow")
