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
from beaver_hooks_curated.entries import Entries, Target, join, parse, size
from beaver_hostspecs import FileTrust

LARGEST = 1024 * 1024
"""Bytes at which the older half is dropped."""
OUTSIDE = "edited_outside"
UNDO = "undo"


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
