"""The summary of a configuration that a person reviews before it takes effect: its settings, or the changes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.entries import NO_CLASSES, Classes, Entry, entries_of, quoted_change
from beaver_hooks.config.paths import printable


@attrs.frozen(kw_only=True)
class Change:
    """One setting that has changed since the configuration was confirmed.

    Attributes:
        before: the confirmed setting, or `None` if it was added.
        after: the present setting, or `None` if it was removed.
    """

    before: Entry | None
    after: Entry | None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            added = self.after is not None
            there = self.after or self.before
            assert there is not None  # noqa: S101 - a change has a setting before or after it
            return f"{there.path}: {'added' if added else 'removed, was'} {there.shown}"
        before, after = self.before, self.after
        if before.kind == after.kind == "text" and before.value is not None and after.value is not None:
            shown = quoted_change(before.value, after.value)
        else:
            shown = f"{before.shown} -> {after.shown}"
        hidden = " (changed where it is not shown)" if before.shown == after.shown else ""
        return f"{after.path}: {shown}{hidden}"


@attrs.frozen(kw_only=True)
class Summary:
    """A configuration in the form that can be shown: its settings, or their changes.

    Attributes:
        path: the real path of the file.
        changed: whether it was confirmed with other content.
        entries: its settings, in the order of the file.
        previous: the confirmed settings; `None` if they are unknown.
    """

    path: Path
    changed: bool
    entries: tuple[Entry, ...]
    previous: tuple[Entry, ...] | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes since the confirmation; none if the confirmed settings are unknown."""
        return () if self.previous is None else compare(self.previous, self.entries)

    def __str__(self) -> str:
        lines = [f"  {each}" for each in self.changes or self.entries]
        if self.changes:
            added_or_changed = sum(each.after is not None for each in self.changes)
            lines.append(f"  as they were: {len(self.entries) - added_or_changed} other settings")
        return "\n".join([printable(str(self.path)), *lines])


def summarise(
    raw: Mapping[str, Any],
    path: Path,
    *,
    changed: bool,
    previous: tuple[Entry, ...] | None = None,
    salt: str = "",
    classes: Classes = NO_CLASSES,
) -> Summary:
    """Return the summary of a configuration; for the arguments see `Summary` and `entries_of`."""
    return Summary(path=path, changed=changed, entries=entries_of(raw, salt=salt, classes=classes), previous=previous)


def compare(before: tuple[Entry, ...], after: tuple[Entry, ...]) -> tuple[Change, ...]:
    """Return the changes in the order of the newer entries, and then the removed entries."""
    old, new = _numbered(before), _numbered(after)
    changed = [
        Change(before=old.get(place), after=entry)
        for place, entry in new.items()
        if place not in old or old[place].digest != entry.digest
    ]
    removed = [Change(before=entry, after=None) for place, entry in old.items() if place not in new]
    return (*changed, *removed)


def _numbered(entries: tuple[Entry, ...]) -> dict[tuple[str, int], Entry]:
    """Return the entries by path and number; the number distinguishes entries whose shown path is the same."""
    found: dict[tuple[str, int], Entry] = {}
    for entry in entries:
        number = 0
        while (entry.path, number) in found:
            number += 1
        found[entry.path, number] = entry
    return found
