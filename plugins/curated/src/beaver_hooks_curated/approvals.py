"""Writes that wait for the user's approval, in a file beside the memory. Needs the folder's lock to change."""

import json
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from attrs import field

from beaver_hooks_curated import files
from beaver_hooks_curated.edits import Operation
from beaver_hooks_curated.entries import Entries, Target
from beaver_hooks_curated.errors import EditRefused, MemoryUnreadable
from beaver_hooks_curated.history import aware
from beaver_hostspecs import FileTrust

FILE = ".pending.json"
MOST = 50
"""Writes that may wait at once."""


@attrs.frozen(kw_only=True)
class Staged:
    """One write that waits.

    Attributes:
        id: the name by which the user approves or rejects it.
        operations: its steps; each `old_text` is the exact entry that it matched when it was staged.
        evicted: the entries that may make room for it, and no others.
        echoes: the content repeats references recalled for the turn of the call.
        batch: the operations came as a list, which must leave an entry.
    """

    id: str = field(factory=lambda: secrets.token_hex(3))
    when: datetime
    target: Target
    operations: tuple[Operation, ...] = field(repr=False)
    evicted: Entries = field(default=(), repr=False)
    echoes: bool = False
    batch: bool = False


class Queue:
    """The staged writes of one folder."""

    def __init__(self, folder: Path, trust: FileTrust) -> None:
        self._path = folder / FILE
        self._trust = trust

    def all(self) -> tuple[Staged, ...]:
        """Return the staged writes, the oldest first.

        Raises:
            MemoryUnconfirmed: the file may not be believed: a repository could bring writes that its author wants.
            MemoryUnreadable: the file exists and does not hold staged writes.
        """
        text = files.read(self._path, self._trust, largest=files.LARGEST_OF_OURS).text
        try:
            return tuple(_staged(plain) for plain in json.loads(text or "[]"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise MemoryUnreadable(
                f"The waiting writes in {self._path} cannot be read. Move the file away to start with an empty list."
            ) from None

    def put(self, staged: Staged) -> None:
        """Add a staged write.

        Raises:
            EditRefused: too many wait already.
        """
        waiting = self.all()
        if len(waiting) >= MOST:
            raise EditRefused(
                f"{MOST} writes wait for approval already; ask the user to approve or reject some.", kind="queue_full"
            )
        self._save((*waiting, staged))

    def drop(self, staged_id: str) -> None:
        """Remove a staged write."""
        self._save(tuple(each for each in self.all() if each.id != staged_id))

    def _save(self, waiting: tuple[Staged, ...]) -> None:
        text = json.dumps([_plain(each) for each in waiting], ensure_ascii=False, indent=1)
        files.overwrite(self._path, text, self._trust)


def _plain(staged: Staged) -> dict[str, Any]:
    return {**attrs.asdict(staged), "when": staged.when.isoformat()}


def _staged(plain: dict[str, Any]) -> Staged:
    if not plain["operations"]:
        raise ValueError("nothing to do")
    return Staged(
        id=str(plain["id"]),
        when=aware(plain["when"]),
        target=Target(plain["target"]),
        operations=tuple(_operation(each) for each in plain["operations"]),
        evicted=tuple(map(_text, plain.get("evicted", ()))),
        echoes=bool(plain.get("echoes", False)),
        batch=bool(plain.get("batch", False)),
    )


def _operation(plain: dict[str, Any]) -> Operation:
    content, old_text = plain.get("content"), plain.get("old_text")
    return Operation(
        action=_text(plain["action"]),
        content=None if content is None else _text(content),
        old_text=None if old_text is None else _text(old_text),
        exact=bool(plain.get("exact", False)),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("it must be a text")
    return value
