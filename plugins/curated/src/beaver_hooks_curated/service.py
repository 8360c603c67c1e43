"""Curated memory as the rest of the plugin uses it: snapshot, change, approval, undo. Blocking, without a host."""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs
from attrs import field

from beaver_hooks_curated.approvals import Staged, pinned
from beaver_hooks_curated.backup import CuratedBackup
from beaver_hooks_curated.edits import Operation, action_of, apply, prepare
from beaver_hooks_curated.entries import BOTH, Page, Target, Targets, join, parse
from beaver_hooks_curated.errors import (
    EditRefused,
    MemoryLocked,
    MemoryUnconfirmed,
    MemoryUnreadable,
    MemoryUnwritable,
    UnknownChange,
)
from beaver_hooks_curated.history import NOTHING_TO_UNDO, Change, by_hand
from beaver_hooks_curated.layout import Layout
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.snapshot import MemorySnapshot, take
from beaver_hooks_curated.store import MemoryStore, WriteResult, fault
from beaver_hooks_curated.subject import CuratedSubject
from beaver_hostspecs import BelieveAll, Caller, Clock, FileTrust, SystemClock, Trust


@attrs.frozen(kw_only=True)
class Taken:
    """A snapshot, and the edits by others that it found.

    Attributes:
        outside: edits by others that are now in the history.
        not_kept: how many edits by others could not be recorded; the snapshot shows them nevertheless.
        emptied: targets that were emptied without the tool, and not written since.
        unconfirmed: the files that are left out because the user has not confirmed their content.
    """

    snapshot: MemorySnapshot
    outside: tuple[Change, ...] = field(default=(), repr=False)
    not_kept: int = 0
    emptied: tuple[Target, ...] = ()
    unconfirmed: tuple[Path, ...] = ()


@attrs.frozen(kw_only=True)
class Forgotten:
    """The result of `forget_history`: the number of folders, and the edits by others that it found."""

    folders: int
    outside: tuple[Change, ...] = field(default=(), repr=False)


class MemoryService:
    """The two memories of every user, with the settings applied.

    Every method may wait for a disk or a lock: call them off the event loop. None touches a network.

    Args:
        folder: the folder of the project's files.
        settings: limits and policies.
        person: the folder of the profile that the user's projects share; `folder` unless given.
        clock: the source of time.
        trust: says which files may be believed; all, unless given.

    Attributes:
        backup: copies the files into a backup, and brings them back.
        subject: exports and erases the profile of one user.
    """

    def __init__(
        self, folder: Path, settings: CuratedSettings, *, person: Path | None = None, clock: Clock | None = None,
        trust: FileTrust | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self._clock = clock or SystemClock()
        self._swept = False
        trust = trust or BelieveAll()
        self._places = Layout(folder, person or folder, settings, self._clock, trust)
        self.backup = CuratedBackup(self._places, trust)
        self.subject = CuratedSubject(self._places, settings)

    @property
    def folder(self) -> Path:
        """The folder of the project's files."""
        return self._places.folder

    def readable(self, caller: Caller) -> Targets:
        """Return the targets that a caller may read: those of the owner with inner trust, its own with any."""
        return self._reached(caller, Trust.INNER)

    def writable(self, caller: Caller) -> Targets:
        """Return the targets that a caller may write: those of the owner with full trust, its own with any."""
        return self._reached(caller, Trust.FULL)

    def sweep(self) -> int:
        """Remove temporary files that killed processes left behind; return how many. Writes do it by themselves."""
        return sum(store.sweep() for store in self._places.all())

    def page(self, target: Target, user: str | None = None) -> Page:
        """Return the entries that a target holds now."""
        return self._places.store(target, user).read(target).page

    def snapshot(self, user: str | None = None, targets: Targets = BOTH) -> Taken:
        """Return the snapshot of the targets for a run of this user.

        Raises:
            MemoryUnreadable: a file exists and cannot be read. One that is not confirmed is left out.
        """
        self._sweep_once()
        pages: list[Page] = []
        outside: list[Change] = []
        not_kept: list[Change] = []
        unconfirmed: list[Path] = []
        for target, store in self._stores(user, targets):
            try:
                reading = store.read(target)
                written = _adopted(target, store) if reading.outside else None
            except MemoryUnconfirmed as error:
                unconfirmed.append(error.path)
                continue
            pages.append(written.page if written else reading.page)
            if written:
                outside += written.outside
            elif reading.outside:
                not_kept.append(reading.outside)
        return Taken(
            snapshot=take(pages),
            outside=tuple(outside),
            not_kept=len(not_kept),
            emptied=(*self._emptied(user, targets), *(each.target for each in not_kept if each.empties)),
            unconfirmed=tuple(unconfirmed),
        )

    def unconfirmed(self, user: str | None = None) -> tuple[Path, ...]:
        """Return the files that are left out until the user confirms their content."""
        return tuple(each.path for each in self._faults(user) if isinstance(each, MemoryUnconfirmed))

    def problems(self, user: str | None = None) -> tuple[str, ...]:
        """Return a sentence for each file that cannot be read, with its remedy; without a user, of all users.

        Files that wait to be confirmed are not among them: `unconfirmed` has those.
        """
        stores = self._places.all() if user is None else self._places.reached(user)
        faults = [each for store, targets in stores.items() for target in targets for each in store.faults(target)]
        faults += [each for store in stores if (each := fault(store.queue.all))]
        return tuple(str(each) for each in faults if not isinstance(each, MemoryUnconfirmed))

    def is_well(self, user: str | None = None) -> bool:
        """Whether all files can be read and are confirmed, and no target was emptied without the tool."""
        return not self._faults(user) and not self._emptied(user, BOTH)

    def change(
        self, target: Target, operations: Sequence[Operation], user: str | None = None, *, batch: bool | None = None
    ) -> WriteResult:
        """Make an edit, all of it or nothing.

        Args:
            target: which memory.
            operations: the steps, in order.
            user: whose memory.
            batch: the steps came as a list, which must leave an entry; several always do.

        Raises:
            EditRefused: it does not fit, or undo could not take it back.
            CuratedError: a file cannot be read or written; see `MemoryStore.write`.
        """
        prepared = prepare(operations)
        plan = partial(apply, operations=prepared, archive=self._archives, batch=batch)
        return self._places.store(target, user).write(target, plan, action=action_of(prepared))

    # --- Approval -----------------------------------------------------------------------------------------------

    def stage(
        self, target: Target, operations: Sequence[Operation], user: str | None = None, *, echoes: bool = False,
        batch: bool | None = None,
    ) -> Staged:  # fmt: skip
        """Stage an edit for approval. It is checked and scanned now, and pinned to the entries that it matches.

        Raises:
            EditRefused: it does not fit, or too many wait.
        """
        prepared = prepare(operations)
        store = self._places.store(target, user)
        page = store.read(target).page
        edit = apply(page, prepared, archive=self._archives, batch=batch)
        staged = Staged(
            when=self._clock.now(),
            target=target,
            operations=pinned(edit, prepared),
            evicted=edit.evicted,
            echoes=echoes,
            batch=bool(batch),
        )
        with store.locked():
            store.queue.put(staged)
        return staged

    def pending(self, user: str | None = None, targets: Targets = BOTH) -> tuple[Staged, ...]:
        """Return the writes that wait for this user's approval, the oldest first."""
        return tuple(staged for _, staged in self._all_waiting(user, targets))

    def approve(self, staged_id: str, user: str | None = None, targets: Targets = BOTH) -> WriteResult:
        """Make a staged edit.

        Raises:
            UnknownChange: no write of that id waits.
            EditRefused: its entries have changed since; it goes on waiting.
        """
        queued_in, staged = self._waiting(staged_id, user, targets)
        try:
            prepared = attrs.evolve(staged, operations=prepare(staged.operations))
            plan = partial(prepared.apply, archive=self._archives)
            store = self._places.store(staged.target, user)
            written = store.write(staged.target, plan, action=action_of(staged.operations))
        except EditRefused as error:
            raise EditRefused(
                f"The waiting write {staged_id} cannot be made now and stays in the list: {error}", kind="stale"
            ) from error
        self._drop(queued_in, staged)
        return attrs.evolve(written, echoes=staged.echoes)

    def reject(self, staged_id: str, user: str | None = None, targets: Targets = BOTH) -> Staged:
        """Drop a staged edit, or raise `UnknownChange`."""
        queued_in, staged = self._waiting(staged_id, user, targets)
        self._drop(queued_in, staged)
        return staged

    # --- For users ----------------------------------------------------------------------------------------------

    def history(self, user: str | None = None, targets: Targets = BOTH) -> tuple[Change, ...]:
        """Return the kept changes of the targets, the oldest first."""
        changes = [change for target, store in self._stores(user, targets) for change in store.changes(target)]
        return tuple(sorted(changes, key=lambda change: change.when))

    def undo(self, user: str | None = None, targets: Targets = BOTH) -> WriteResult:
        """Undo the newest change of the targets that still stands; an edit by hand counts, seen before or not.

        Raises:
            UnknownChange: there is none.
            EditRefused: it cannot be undone, for example because an entry was changed again; names that entry.
                The next call skips it.
        """
        outside = self.adopt(user, targets)
        standing = [change for target, store in self._stores(user, targets) if (change := store.standing(target))]
        if not standing:
            raise UnknownChange(NOTHING_TO_UNDO)
        # Of several changes with the same time, the last one listed.
        target = max(reversed(standing), key=lambda change: change.when).target
        written = self._places.store(target, user).undo(target)
        return attrs.evolve(written, outside=(*outside, *written.outside))

    def adopt(self, user: str | None = None, targets: Targets = BOTH) -> tuple[Change, ...]:
        """Record edits by others that are not in the history yet; return them."""
        seen = [store.adopt(target) for target, store in self._stores(user, targets) if store.read(target).outside]
        return tuple(change for written in seen for change in written.outside)

    def folder_of(self, target: Target, user: str | None = None) -> Path:
        """Return the folder of a user's target."""
        return self._places.folder_of(target, user)

    def editable(self, target: Target, user: str | None = None) -> str:
        """Return the text of a target for an editor; hand it back to `edited` as `base`."""
        return join(self.page(target, user).entries)

    def edited(self, target: Target, base: str, text: str, user: str | None = None) -> WriteResult:
        """Save the text that the user made of `base` in an editor; entries written in the meantime stay.

        New entries are cleaned like those of the tool; one that looks like a threat is saved, and hidden from models.

        Raises:
            EditRefused: it is too long.
        """
        plan = partial(by_hand, base=parse(base), text=parse(text))
        return self._places.store(target, user).write(target, plan, action="edit")

    def forget_history(self, user: str | None = None, targets: Targets = BOTH) -> Forgotten:
        """Drop removed entries from histories, archives and texts kept aside.

        With `perUser` and a user: in the notes and in this user's profile, as far as they are among the targets.
        Without a user: everywhere.
        """
        everywhere = user is None and targets == BOTH
        reached = self._places.all() if everywhere else self._places.reached(user, targets)
        stores = {store: there for store, there in reached.items() if store.folder.is_dir()}
        outside = [change for store, there in stores.items() for change in store.forget_history(there)]
        return Forgotten(folders=len(stores), outside=tuple(outside))

    def _reached(self, caller: Caller, needed: Trust) -> Targets:
        if caller.trust.reaches(needed):
            return BOTH
        return (Target.USER,) if self.settings.per_user and caller.user is not None else ()

    def _sweep_once(self) -> None:
        """Sweep before the first snapshot; where that cannot be done now, the first write does it."""
        if not self._swept:
            self._swept = True
            with contextlib.suppress(MemoryLocked, MemoryUnwritable):
                self.sweep()

    @property
    def _archives(self) -> bool:
        return self.settings.overflow == "archive"

    def _faults(self, user: str | None) -> list[MemoryUnreadable]:
        return [each for target, store in self._stores(user, BOTH) for each in store.faults(target)]

    def _emptied(self, user: str | None, targets: Targets) -> tuple[Target, ...]:
        return tuple(target for target, store in self._stores(user, targets) if _is_emptied(target, store))

    def _stores(self, user: str | None, targets: Targets) -> list[tuple[Target, MemoryStore]]:
        return [(target, self._places.store(target, user)) for target in targets]

    def _all_waiting(self, user: str | None, targets: Targets) -> list[tuple[MemoryStore, Staged]]:
        """Return the waiting writes, each with its store, the oldest first."""
        found = [
            (store, staged)
            for store, there in self._places.reached(user, targets).items()
            for staged in store.queue.all()
            if staged.target in there
        ]
        return sorted(found, key=lambda each: each[1].when)

    def _waiting(self, staged_id: str, user: str | None, targets: Targets) -> tuple[MemoryStore, Staged]:
        for store, staged in self._all_waiting(user, targets):
            if staged.id == staged_id:
                return store, staged
        raise UnknownChange("No waiting write has this id; `/memory curated pending` lists them.")

    def _drop(self, store: MemoryStore, staged: Staged) -> None:
        with store.locked():
            store.queue.drop(staged.id)


def _adopted(target: Target, store: MemoryStore) -> WriteResult | None:
    """Record an edit by others; `None` where that cannot be done now: reading needs no disk space."""
    try:
        return store.adopt(target)
    except (MemoryUnwritable, MemoryLocked):
        return None


def _is_emptied(target: Target, store: MemoryStore) -> bool:
    try:
        return store.emptied(target)
    except MemoryUnconfirmed:
        return False  # `unconfirmed` reports it already
