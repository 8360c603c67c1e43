"""Curated memory as the rest of the plugin uses it: snapshot, change, approval, undo. Blocking, without a host."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs
from attrs import field

from beaver_hooks_curated.editing import Edit, Operation, apply, prepare
from beaver_hooks_curated.entries import Page, Target, join, parse, size
from beaver_hooks_curated.errors import EditRefused, MemoryLocked, MemoryUnwritable, UnknownChange
from beaver_hooks_curated.history import Change
from beaver_hooks_curated.merging import merge
from beaver_hooks_curated.places import Places
from beaver_hooks_curated.scanning import Scanner
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.snapshot import MemorySnapshot, take
from beaver_hooks_curated.staging import Staged
from beaver_hooks_curated.store import MemoryStore, Written
from beaver_hostspecs import Clock, SystemClock


@attrs.frozen(kw_only=True)
class Taken:
    """A snapshot, and what was found on the way to it.

    Attributes:
        outside: edits by others that were written down now.
        not_kept: how many edits by others could not be written down; they are shown all the same.
    """

    snapshot: MemorySnapshot
    outside: tuple[Change, ...] = field(default=(), repr=False)
    not_kept: int = 0


class MemoryService:
    """The two memories of every user, with the settings applied.

    Every method may wait for a disk or a lock: call them off the event loop. None touches a network.

    Args:
        folder: where the files are.
        settings: limits and policies.
        clock: where time comes from.
    """

    def __init__(self, folder: Path, settings: CuratedSettings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.scan = Scanner()
        self._clock = clock or SystemClock()
        self._places = Places(folder, settings, self._clock)

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._places.folder

    def sweep(self) -> int:
        """Remove temporary files that killed processes left behind; return how many."""
        return sum(store.sweep() for store in self._places.stores())

    def page(self, target: Target, user: str | None = None) -> Page:
        """Return what a target holds now."""
        return self._places.store(target, user).read(target).page

    def snapshot(self, user: str | None = None) -> Taken:
        """Return what a run of this user gets to see.

        Raises:
            MemoryUnreadable: a file is there and cannot be read.
        """
        pages: list[Page] = []
        outside: list[Change] = []
        not_kept = 0
        for target in Target:
            store = self._places.store(target, user)
            reading = store.read(target)
            pages.append(reading.page)
            if reading.outside is None:
                continue
            try:
                written = store.adopt(target)
            except (MemoryUnwritable, MemoryLocked):
                # Reading needs no disk space: the caller says that it could not be kept.
                not_kept += 1
            else:
                pages[-1] = written.page
                outside += written.outside
        return Taken(snapshot=take(pages, self.scan), outside=tuple(outside), not_kept=not_kept)

    def change(self, target: Target, operations: Sequence[Operation], user: str | None = None) -> Written:
        """Make an edit, all of it or nothing.

        Raises:
            EditRefused: it does not fit.
            CuratedError: a file cannot be read or written; see `MemoryStore.write`.
        """
        prepared = prepare(operations)
        plan = partial(_applied, operations=prepared, archive=self.settings.overflow == "archive")
        return self._places.store(target, user).write(target, plan, action=_action(prepared))

    # --- Approval -----------------------------------------------------------------------------------------------

    def stage(self, target: Target, operations: Sequence[Operation], user: str | None = None) -> Staged:
        """Let an edit wait for approval. It is checked and scanned now, and pinned to the entries it means.

        Raises:
            EditRefused: it does not fit, or too many wait.
        """
        prepared = prepare(operations)
        store = self._places.store(target, user)
        page = store.read(target).page
        edit = _applied(page, operations=prepared, archive=self.settings.overflow == "archive")
        pinned = _pinned(edit, prepared)
        staged = Staged(when=self._clock.now(), target=target, operations=pinned)
        with store.locked():
            self._places.queue(target, user).put(staged)
        return staged

    def pending(self, user: str | None = None) -> tuple[Staged, ...]:
        """Return what waits for this user's approval, the oldest first."""
        queues = {store.folder: self._places.queue(target, user) for target, store in self._stores(user)}
        return tuple(sorted((each for queue in queues.values() for each in queue.all()), key=lambda each: each.when))

    def approve(self, staged_id: str, user: str | None = None) -> Written:
        """Make a staged edit.

        Raises:
            UnknownChange: nothing of that id waits.
            EditRefused: what it means has changed since; it goes on waiting.
        """
        staged = self._waiting(staged_id, user)
        try:
            written = self.change(staged.target, staged.operations, user)
        except EditRefused as error:
            raise EditRefused(
                f"The staged write {staged_id} no longer fits and goes on waiting: {error}", kind="stale"
            ) from error
        self._drop(staged, user)
        return written

    def reject(self, staged_id: str, user: str | None = None) -> Staged:
        """Drop a staged edit, or raise `UnknownChange`."""
        staged = self._waiting(staged_id, user)
        self._drop(staged, user)
        return staged

    # --- For people ---------------------------------------------------------------------------------------------

    def history(self, user: str | None = None) -> tuple[Change, ...]:
        """Return the kept changes of both targets, the oldest first."""
        changes = [change for target, store in self._stores(user) for change in store.changes(target)]
        return tuple(sorted(changes, key=lambda change: change.when))

    def undo(self, user: str | None = None) -> Written:
        """Take back the last change that still stands, of either target.

        Raises:
            UnknownChange: there is none.
            EditRefused: it was changed again since.
        """
        for target in dict.fromkeys(change.target for change in reversed(self.history(user))):
            try:
                return self._places.store(target, user).undo(target)
            except UnknownChange:
                continue
        raise UnknownChange("There is no change to undo; the history shows what is kept.")

    def editable(self, target: Target, user: str | None = None) -> str:
        """Return the text of a target for an editor; hand it back to `edited` as `base`."""
        return join(self.page(target, user).entries)

    def edited(self, target: Target, base: str, text: str, user: str | None = None) -> Written:
        """Take what a person made of `base` in an editor; what was written in the meantime stays.

        Raises:
            EditRefused: it is too long.
        """
        plan = partial(_by_hand, base=parse(base), text=parse(text))
        return self._places.store(target, user).write(target, plan, action="edit")

    def forget_history(self, user: str | None = None) -> None:
        """Drop what history and archive keep of entries that are gone."""
        for store in {store.folder: store for _, store in self._stores(user)}.values():
            store.forget_history()

    def _stores(self, user: str | None) -> list[tuple[Target, MemoryStore]]:
        return [(target, self._places.store(target, user)) for target in Target]

    def _waiting(self, staged_id: str, user: str | None) -> Staged:
        for staged in self.pending(user):
            if staged.id == staged_id:
                return staged
        raise UnknownChange("No staged write has that id; `/memory curated pending` lists them.")

    def _drop(self, staged: Staged, user: str | None) -> None:
        with self._places.store(staged.target, user).locked():
            self._places.queue(staged.target, user).drop(staged.id)


def _action(operations: Sequence[Operation]) -> str:
    return operations[0].action if len(operations) == 1 else "batch"


def _applied(page: Page, *, operations: Sequence[Operation], archive: bool) -> Edit:
    return apply(page, operations, archive=archive)


def _pinned(edit: Edit, operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return the operations with each `old_text` as the whole entry that it means now."""
    meant = dict((*edit.replaced, *edit.removed))
    return tuple(
        attrs.evolve(operation, old_text=meant[number], exact=True) if number in meant else operation
        for number, operation in enumerate(operations, 1)
    )


def _by_hand(page: Page, *, base: tuple[str, ...], text: tuple[str, ...]) -> Edit:
    merged = merge(base, page.entries, text)
    if size(merged) > page.limit and size(merged) > page.size:
        raise EditRefused(
            f"This would be {size(merged):,} of {page.limit:,} characters; shorten it and save again.",
            kind="overflow",
        )
    return Edit(entries=merged)
