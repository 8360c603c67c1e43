"""The history of changes: one line of JSON per change, written before the change is made.

The history knows the last acknowledged state, so that edits by hand are recognised and a change can be undone.
A line that a crash cut off is skipped. The last line may record a change that was never made; then the file still holds
the state before it.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import attrs
from attrs import field
from attrs.validators import instance_of, optional

from beaver_hooks_curated import files
from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import Entries, Page, Target, join, parse, size, tidy
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.threat_scan import clean, one_line
from beaver_hostspecs import FileTrust

LARGEST = 1024 * 1024
"""Bytes at which the older half is dropped."""
OUTSIDE = "edited_outside"
UNDO = "undo"

NOTHING_TO_UNDO = "There is no change to undo; `history` shows the changes."
_PREVIEW = 60


@attrs.frozen(kw_only=True)
class Change:
    """One change of one target.

    Attributes:
        id: a random name, which tells nothing about the content.
        action: `add`, `replace`, `remove`, `batch`, `edit`, `restore`, `undo`, or `edited_outside` for one found in the
            file.
        undoes: the id of the change that this one undoes, or that undo has skipped.
        slipped: the user saved it during a write of the plugin, so it was missing in the file for a moment.
    """

    id: str = field(factory=lambda: secrets.token_hex(4))
    when: datetime
    target: Target
    action: str
    before: Entries = field(repr=False)
    after: Entries = field(repr=False)
    undoes: str | None = field(default=None, validator=optional(instance_of(str)))
    slipped: bool = False

    @property
    def empties(self) -> bool:
        """Whether it removes all entries."""
        return bool(self.before) and not self.after

    @property
    def added(self) -> Entries:
        """The entries that it added."""
        return _missing(self.after, self.before)

    @property
    def removed(self) -> Entries:
        """The entries that it removed."""
        return _missing(self.before, self.after)

    def facts(self) -> dict[str, Any]:
        """Return its facts for an audit event: ids and sizes, no text."""
        return {
            "change": self.id,
            "target": self.target.value,
            "action": self.action,
            "added": len(self.added),
            "removed": len(self.removed),
            "entries": len(self.after),
            "characters_before": size(self.before),
            "characters": size(self.after),
        }


def history_path(folder: Path, target: Target) -> Path:
    """Return the path of the history of a target."""
    return folder / f".{target.file_name}.history.jsonl"


class History:
    """The changes of one target, in a file beside it."""

    def __init__(self, folder: Path, target: Target, trust: FileTrust) -> None:
        self.path = history_path(folder, target)
        self._trust = trust
        self._target = target
        self._known: tuple[tuple[int, int, int], tuple[Change, ...]] | None = None

    @property
    def last(self) -> Change | None:
        """The last change, or `None`."""
        return next(reversed(self.changes()), None)

    def changes(self) -> tuple[Change, ...]:
        """Return every kept change, the oldest first.

        Raises:
            MemoryUnreadable: the file exists and cannot be read.
        """
        mark, known = files.mark(self.path), self._known
        if known is None or known[0] != mark:
            lines = files.read_lines(self.path, self._trust)
            known = (mark, tuple(change for line in lines if (change := _parsed(line, self._target))))
            self._known = known
        return known[1]

    def append(self, changes: Sequence[Change]) -> None:
        """Append changes, durably, and drop the older half of a history that has grown too long.

        Raises:
            MemoryUnwritable: it could not be done.
        """
        # An earlier writer may have been stopped before it could shorten the file.
        self._shorten()
        before = self.changes()
        files.append(self.path, [_line(change) for change in changes], self._trust)
        self._known = (files.mark(self.path), (*before, *changes))
        self._shorten()

    def forget(self) -> None:
        """Drop all changes but the last state, by which edits by hand are recognised."""
        self._save(attrs.evolve(change, before=change.after) for change in self.changes()[-1:])

    def _shorten(self) -> None:
        """Drop the older half of the changes, but not the last one, where the file is too long."""
        if files.mark(self.path)[1] <= LARGEST:
            return
        changes = self.changes()
        sizes = accumulate(len(_line(change).encode("utf-8")) for change in reversed(changes))
        count = max(1, sum(size <= LARGEST // 2 for size in sizes))
        self._save(changes[-count:])

    def _save(self, changes: Iterable[Change]) -> None:
        files.overwrite(self.path, "".join(f"{_line(change)}\n" for change in changes), self._trust)
        self._known = None


def _missing(entries: Entries, others: Entries) -> Entries:
    known = frozenset(others)
    return tuple(entry for entry in entries if entry not in known)


def _line(change: Change) -> str:
    return json.dumps(attrs.asdict(change) | {"when": change.when.isoformat()}, ensure_ascii=False)


def _parsed(line: str, target: Target) -> Change | None:
    """Return the change of a line, or `None` for one that was cut off or damaged."""
    try:
        plain = json.loads(line)
        return Change(
            id=str(plain["id"]),
            when=aware(plain["when"]),
            target=target,
            action=str(plain["action"]),
            before=_state(plain["before"]),
            after=_state(plain["after"]),
            undoes=plain.get("undoes"),
            slipped=plain.get("slipped") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def aware(text: str) -> datetime:
    """Return a time that can be compared with others, or raise `ValueError` or `TypeError`."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError("a time without a zone")
    return when


def _state(value: object) -> Entries:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("it must be a list of texts")
    entries = tuple(value)
    join(entries).encode("utf-8")
    if parse(join(entries)) != entries:
        raise ValueError("that can never have been in a file")
    return entries


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
