"""What was changed: one line of JSON per change, before the change itself is made.

The history knows the last acknowledged state, so that edits by hand are recognised and a change can be undone.
A line that a crash cut off is skipped. The last line may speak of a change that never came to be; then the file
still shows what was before it.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from attrs import field

from beaver_hooks_curated import files
from beaver_hooks_curated.entries import Entries, Target, size

LARGEST = 1024 * 1024
"""Bytes at which the older half is dropped."""
OUTSIDE = "edited_outside"
UNDO = "undo"


@attrs.frozen(kw_only=True)
class Change:
    """One change of one target.

    Attributes:
        id: names it; random, says nothing of the content.
        action: `add`, `replace`, `remove`, `batch`, `edit`, `undo`, or `edited_outside` for one found in the file.
        undoes: the id of the change that this one takes back.
    """

    id: str = field(factory=lambda: secrets.token_hex(4))
    when: datetime
    target: Target
    action: str
    before: Entries = field(repr=False)
    after: Entries = field(repr=False)
    undoes: str | None = None

    @property
    def added(self) -> Entries:
        """What it brought."""
        return tuple(entry for entry in self.after if entry not in self.before)

    @property
    def removed(self) -> Entries:
        """What it took away."""
        return tuple(entry for entry in self.before if entry not in self.after)

    def facts(self) -> dict[str, Any]:
        """Return what may be said of it in an audit event: ids and sizes, no text."""
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


class History:
    """The changes of one target, in a file beside it."""

    def __init__(self, folder: Path, target: Target) -> None:
        self.path = folder / f".{target.file_name}.history.jsonl"
        self._target = target
        self._known: tuple[tuple[int, int, int], tuple[Change, ...]] | None = None

    def changes(self) -> tuple[Change, ...]:
        """Return every kept change, the oldest first.

        Raises:
            MemoryUnreadable: the file is there and cannot be read.
        """
        mark = self._mark()
        if self._known is None or self._known[0] != mark:
            lines = files.read_lines(self.path)
            self._known = (mark, tuple(change for line in lines if (change := _parsed(line, self._target))))
        return self._known[1]

    def append(self, changes: Sequence[Change]) -> None:
        """Write changes down, durably, and drop the older half of a history that has grown too long.

        Raises:
            MemoryUnwritable: it could not be done.
        """
        before = self.changes()
        files.append(self.path, [_line(change) for change in changes])
        self._known = (self._mark(), (*before, *changes))
        if self._known[0][1] > LARGEST:
            self._shorten()

    def forget(self) -> None:
        """Drop all changes but the last state, which tells edits by hand from ours."""
        self._keep([attrs.evolve(change, before=change.after) for change in self.changes()[-1:]])

    def _shorten(self) -> None:
        kept: list[Change] = []
        total = 0
        for change in reversed(self.changes()):
            total += len(_line(change).encode("utf-8"))
            if kept and total > LARGEST // 2:
                break
            kept.insert(0, change)
        self._keep(kept)

    def _keep(self, changes: Iterable[Change]) -> None:
        files.replace(self.path, "".join(f"{_line(change)}\n" for change in changes))
        self._known = None

    def _mark(self) -> tuple[int, int, int]:
        """Return what tells one state of the file from another; it grows, or another file takes its place."""
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_size, status.st_mtime_ns)


def _line(change: Change) -> str:
    plain = {**attrs.asdict(change), "when": change.when.isoformat()}
    return json.dumps(plain, ensure_ascii=False)


def _parsed(line: str, target: Target) -> Change | None:
    """Return the change of a line, or `None` for one that was cut off or damaged."""
    try:
        plain = json.loads(line)
        return Change(
            id=str(plain["id"]),
            when=datetime.fromisoformat(plain["when"]),
            target=target,
            action=str(plain["action"]),
            before=_texts(plain["before"]),
            after=_texts(plain["after"]),
            undoes=plain.get("undoes"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _texts(values: object) -> Entries:
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError("a list of texts is wanted")
    return tuple(values)
