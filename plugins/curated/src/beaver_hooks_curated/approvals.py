"""Writes that wait for the user's approval, in a file beside the memory. Needs the folder's lock to change."""

import json
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from attrs import field
from attrs.validators import deep_iterable, instance_of

from beaver_hooks_curated import files
from beaver_hooks_curated.edits import Edit, Operation, apply
from beaver_hooks_curated.entries import Entries, Page, Target
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

    id: str = field(factory=lambda: secrets.token_hex(3), validator=instance_of(str))
    when: datetime
    target: Target
    operations: tuple[Operation, ...] = field(repr=False)
    evicted: Entries = field(default=(), repr=False, validator=deep_iterable(instance_of(str)))
    echoes: bool = False
    batch: bool = False

    def apply(self, page: Page, *, archive: bool) -> Edit:
        """Return the approved edit.

        Raises:
            EditRefused: it does not fit any more, or entries would make room that the user has not seen.
        """
        edit = apply(page, self.operations, archive=archive, batch=self.batch)
        if not set(edit.evicted) <= set(self.evicted):
            raise EditRefused("The memory has changed, and other entries would have to make room now.", kind="stale")
        return edit


def pinned(edit: Edit, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations with each `old_text` as the whole entry that it matches now."""
    meant = dict((*edit.replaced, *edit.removed))
    return tuple(
        attrs.evolve(operation, old_text=meant[number], exact=True) if number in meant else operation
        for number, operation in enumerate(operations, 1)
    )


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
        self._save(each for each in self.all() if each.id != staged_id)

    def _save(self, waiting: Iterable[Staged]) -> None:
        plain = [{**attrs.asdict(each), "when": each.when.isoformat()} for each in waiting]
        files.overwrite(self._path, json.dumps(plain, ensure_ascii=False, indent=1), self._trust)


def _staged(plain: dict[str, Any]) -> Staged:
    if not plain["operations"]:
        raise ValueError("a write without operations")
    return Staged(
        **plain
        | {
            "when": aware(plain["when"]),
            "target": Target(plain["target"]),
            "operations": tuple(Operation(**each) for each in plain["operations"]),
            "evicted": tuple(plain.get("evicted", ())),
        }
    )
