"""The history of changes: one line of JSON per change, written before the change is made.

The history knows the last acknowledged state, so that edits by hand are recognised and a change can be undone.
A line that a crash cut off is skipped. The last line may record a change that was never made; then the file still
holds the state before it. Of a state that is too large only a sketch is kept, hash and size: it can be recognised, but
not restored. So the history always stays far below the size that is read.
"""

import hashlib
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
from beaver_hooks_curated.entries import Entries, Target, is_large, join, parse, size
from beaver_hostspecs import FileTrust

LARGEST = 1024 * 1024
"""Bytes at which the older half is dropped."""
OUTSIDE = "edited_outside"
UNDO = "undo"


@attrs.frozen(kw_only=True)
class Sketch:
    """A hash and a size, to recognise a state that is too large to keep."""

    sha256: str = field(validator=instance_of(str))
    entries: int = field(validator=instance_of(int))
    characters: int = field(validator=instance_of(int))

    @classmethod
    def of(cls, entries: Entries) -> "Sketch":
        """Return the sketch of a state."""
        text = join(entries)
        return cls(
            sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            entries=len(entries),
            characters=len(text),
        )


@attrs.frozen(kw_only=True)
class Change:
    """One change of one target.

    Attributes:
        id: a random name, which tells nothing about the content.
        action: `add`, `replace`, `remove`, `batch`, `edit`, `move`, `undo`, or `edited_outside` for one found in the
            file.
        undoes: the id of the change that this one undoes, or that undo has skipped.
        before_sketch: stands for `before` where that was too large to be kept.
        after_sketch: stands for `after`, likewise.
        slipped: the user saved it during a write of the plugin, so it was missing in the file for a moment.
    """

    id: str = field(factory=lambda: secrets.token_hex(4))
    when: datetime
    target: Target
    action: str
    before: Entries = field(repr=False)
    after: Entries = field(repr=False)
    undoes: str | None = field(default=None, validator=optional(instance_of(str)))
    before_sketch: Sketch | None = None
    after_sketch: Sketch | None = None
    slipped: bool = False

    @property
    def whole(self) -> bool:
        """Whether both states are kept in full: else the change cannot be undone or merged."""
        return self.before_sketch is None and self.after_sketch is None

    @property
    def empties(self) -> bool:
        """Whether it removes all entries."""
        return bool(self.before or self.before_sketch) and not (self.after or self.after_sketch)

    def began_with(self, entries: Entries) -> bool:
        """Whether it began with this state."""
        return self.before_sketch == Sketch.of(entries) if self.before_sketch else self.before == entries

    def left(self, entries: Entries) -> bool:
        """Whether it left this state."""
        return self.after_sketch == Sketch.of(entries) if self.after_sketch else self.after == entries

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
        before, after = self.before_sketch, self.after_sketch
        return {
            "change": self.id,
            "target": self.target.value,
            "action": self.action,
            "added": len(self.added) if self.whole else None,
            "removed": len(self.removed) if self.whole else None,
            "entries": after.entries if after else len(self.after),
            "characters_before": before.characters if before else size(self.before),
            "characters": after.characters if after else size(self.after),
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
        before, kept = self.changes(), tuple(map(_slim, changes))
        files.append(self.path, [_line(change) for change in kept], self._trust)
        self._known = (files.mark(self.path), (*before, *kept))
        self._shorten()

    def forget(self) -> None:
        """Drop all changes but the last state, by which edits by hand are recognised."""
        last = self.changes()[-1:]
        self._save([attrs.evolve(change, before=change.after, before_sketch=change.after_sketch) for change in last])

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


def _slim(change: Change) -> Change:
    """Return the change as it is kept: sketches for states that are too large."""
    if change.before_sketch is None and is_large(change.before):
        change = attrs.evolve(change, before=(), before_sketch=Sketch.of(change.before))
    if change.after_sketch is None and is_large(change.after):
        change = attrs.evolve(change, after=(), after_sketch=Sketch.of(change.after))
    return change


def _line(change: Change) -> str:
    plain = {
        "id": change.id,
        "when": change.when.isoformat(),
        "target": change.target,
        "action": change.action,
        "before": attrs.asdict(change.before_sketch) if change.before_sketch else change.before,
        "after": attrs.asdict(change.after_sketch) if change.after_sketch else change.after,
        "undoes": change.undoes,
        "slipped": change.slipped,
    }
    return json.dumps(plain, ensure_ascii=False)


def _parsed(line: str, target: Target) -> Change | None:
    """Return the change of a line, or `None` for one that was cut off or damaged."""
    try:
        plain = json.loads(line)
        before, before_sketch = _state(plain["before"])
        after, after_sketch = _state(plain["after"])
        return Change(
            id=str(plain["id"]),
            when=aware(plain["when"]),
            target=target,
            action=str(plain["action"]),
            before=before,
            after=after,
            undoes=plain.get("undoes"),
            before_sketch=before_sketch,
            after_sketch=after_sketch,
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


def _state(value: object) -> tuple[Entries, Sketch | None]:
    """Return entries, or the sketch that stands for them."""
    if isinstance(value, dict):
        return (), Sketch(**value)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("it must be a list of texts")
    entries = tuple(value)
    join(entries).encode("utf-8")
    if parse(join(entries)) != entries:
        raise ValueError("that can never have been in a file")
    return entries, None
