"""One folder of curated memory: reads without a lock, writes under one, and merges edits by others.

The order of a write: archive, history, file. Each is durable before the next begins, and the answer comes after the
last. A crash in between leaves the old file, and a history whose last change was never made.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks_curated import files, rejected_files
from beaver_hooks_curated.approvals import Queue
from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import BOTH, Entries, Page, Target, Targets, join, parse
from beaver_hooks_curated.errors import EditRefused, MemoryUnreadable, UnknownChange
from beaver_hooks_curated.folders import locked, make_folder, sweep
from beaver_hooks_curated.history import (
    NOTHING_TO_UNDO,
    OUTSIDE,
    UNDO,
    Change,
    History,
    last_standing,
    restore,
    without,
)
from beaver_hostspecs import BelieveAll, Clock, FileTrust

ARCHIVE_FILE = "ARCHIVE.jsonl"
BELIEVE_ALL = BelieveAll()
UNSEEN = 5.0
"""Seconds before an edit by hand in which a change of the plugin counts as unseen by its author."""
_ATTEMPTS = 20

Plan = Callable[[Page], Edit]


@attrs.frozen(kw_only=True)
class TargetState:
    """The state of a target.

    Attributes:
        page: the entries, with the changes that their last writer cannot have seen.
        outside: the edit by hand that is not in the history yet, or `None`.
    """

    page: Page
    outside: Change | None = None


@attrs.frozen(kw_only=True)
class WriteResult:
    """The result of a write.

    Attributes:
        page: the entries in the file now.
        edit: the edit that the plan made of the state it found.
        change: the line of the history; `None` for an edit without a change.
        outside: edits by others that the write found.
        echoes: the content repeats references recalled for the turn of the call.
    """

    page: Page
    edit: Edit
    change: Change | None
    outside: tuple[Change, ...] = ()
    echoes: bool = False


class MemoryStore:
    """The two memories of one folder, and the writes that wait for approval.

    Args:
        folder: the folder of the files; made at the first write.
        limits: the characters that each target may hold.
        lock_seconds: how long a write waits for another one.
        clock: the source of time.
        trust: says which files may be believed; all, unless given.
    """

    def __init__(
        self, folder: Path, limits: Mapping[Target, int], *, lock_seconds: float, clock: Clock,
        trust: FileTrust = BELIEVE_ALL,
    ) -> None:  # fmt: skip
        self.folder = folder
        self._trust = trust
        self._limits = limits
        self._lock_seconds = lock_seconds
        self._clock = clock
        self._swept = False
        self.queue = Queue(folder, trust)
        self._histories = {target: History(folder, target, trust) for target in Target}

    def path(self, target: Target) -> Path:
        """Return the path of the target's file."""
        return self.folder / target.file_name

    def read(self, target: Target) -> TargetState:
        """Return the state of the target, without a lock and without writing.

        Raises:
            MemoryUnconfirmed: the file or its history may not be believed.
            MemoryUnreadable: the file exists and cannot be read.
        """
        _, entries, outside = self._found(target)
        return TargetState(page=self._page(target, entries), outside=outside)

    def faults(self, target: Target) -> tuple[MemoryUnreadable, ...]:
        """Return the errors of the target's files that cannot be read or are not confirmed."""
        reads = (partial(files.read, self.path(target), self._trust), self._histories[target].changes)
        return tuple(error for read in reads if (error := fault(read)))

    def write(self, target: Target, plan: Plan, *, action: str) -> WriteResult:
        """Make the edit that `plan` returns for the state found under the lock, durably.

        Raises:
            EditRefused: raised by `plan`; nothing was written.
            MemoryLocked: another process is writing and does not finish.
            MemoryUnreadable: the file cannot be read; it is left as it is.
            MemoryUnwritable: it could not be written; the file is unchanged.
        """
        with self.locked():
            return self._write(target, plan, action)

    def adopt(self, target: Target) -> WriteResult:
        """Record an edit by hand, and restore the changes that its author cannot have seen."""
        with self.locked():
            return self._adopt(target)

    def changes(self, target: Target) -> tuple[Change, ...]:
        """Return the kept changes of a target, the oldest first."""
        return self._histories[target].changes()

    def emptied(self, target: Target) -> bool:
        """Whether the last change in the history is an edit by hand that emptied the target."""
        last = self._histories[target].last
        return last is not None and last.action == OUTSIDE and last.empties

    def standing(self, target: Target) -> Change | None:
        """Return the change of this target that `undo` would revert, or `None`. An edit by hand is adopted first."""
        return last_standing(self.changes(target), self.read(target).page.entries)

    def undo(self, target: Target) -> WriteResult:
        """Undo the target's last change that still stands, also one by hand; edits made since stay.

        Raises:
            UnknownChange: there is none.
            EditRefused: an entry that it added was changed again, or one that it removed no longer fits. The next
                call skips it.
        """
        with self.locked():
            found = self._adopt(target)
            change = last_standing(self.changes(target), found.page.entries)
            if change is None:
                raise UnknownChange(NOTHING_TO_UNDO)
            try:
                written = self._write(target, partial(without, change), UNDO, undoes=change.id)
            except EditRefused:
                state = found.page.entries
                self._histories[target].append([self._change(target, UNDO, state, state, undoes=change.id)])
                raise
            return attrs.evolve(written, outside=(*found.outside, *written.outside))

    def forget_history(self, targets: Targets = BOTH) -> tuple[Change, ...]:
        """Drop removed entries of the targets from history, archive and texts kept aside.

        Edits by others are recorded first, because the entries that they removed are dropped too. They are returned.
        """
        with self.locked():
            outside = [change for target in targets for change in self._adopt(target).outside]
            for target in targets:
                self._histories[target].forget()
            self._forget_archived(targets)
            rejected_files.forget(self.folder, targets)
        return tuple(outside)

    def sweep(self) -> int:
        """Remove temporary files of killed processes; return how many."""
        if not any(self.folder.glob(".*.tmp")):
            return 0
        with locked(self.folder, self._lock_seconds):
            return sweep(self.folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock. The folder is made if it is missing, and swept the first time."""
        make_folder(self.folder)
        with locked(self.folder, self._lock_seconds):
            if not self._swept:
                sweep(self.folder)
                self._swept = True
            yield

    # --- Under the lock -----------------------------------------------------------------------------------------

    def _adopt(self, target: Target) -> WriteResult:
        return self._write(target, lambda page: Edit(entries=page.entries), OUTSIDE)

    def _write(self, target: Target, plan: Plan, action: str, *, undoes: str | None = None) -> WriteResult:
        on_disk, found, outside = self._found(target)
        edit = plan(self._page(target, found))
        change = None
        if edit.entries != found:
            change = self._change(target, action, found, edit.entries, undoes=undoes)
        changes = [each for each in (outside, change) if each]
        if not changes:
            return WriteResult(page=self._page(target, found), edit=edit, change=None)
        files.encoded(self.path(target), join(edit.entries), files.LARGEST)
        self._archive(target, edit.evicted)
        self._histories[target].append(changes)
        slipped = self._put(target, on_disk, edit.entries)
        page = self._page(target, slipped[-1].after if slipped else edit.entries)
        return WriteResult(page=page, edit=edit, change=change, outside=(outside, *slipped) if outside else slipped)

    def _found(self, target: Target) -> tuple[Entries, Entries, Change | None]:
        """Return the entries in the file, the same with the changes that their writer missed, and the edit by hand."""
        last = self._histories[target].last
        found = files.read(self.path(target), self._trust)
        if not found.text and last and last.after:
            found = files.read_settled(self.path(target), self._trust)
        entries = parse(found.text)
        if entries == (last.after if last else ()) or (last and _never_came(last, entries, found)):
            return entries, entries, None
        merged = self._restored(target, found)
        change = self._change(target, OUTSIDE, last.after if last else (), merged)
        return entries, merged, change

    def _restored(self, target: Target, found: files.FileContent) -> Entries:
        """Return the entries that the user wrote, with the changes of the plugin that the user cannot have seen."""
        changes, entries = self._histories[target].changes(), parse(found.text)
        recent = [each for each in changes if each.when.timestamp() > found.written - UNSEEN]
        # An empty text is intended: an editor does not save one by accident over a memory that it had opened.
        return restore(entries, recent) if entries else entries

    def _put(self, target: Target, on_disk: Entries, after: Entries) -> tuple[Change, ...]:
        """Write the entries into the file; an edit saved in the meantime is merged, and the result is written again.

        Raises:
            MemoryUnreadable: the edit saved in the meantime cannot be read. It stays in the file.
        """
        slipped: list[Change] = []
        if on_disk == after and self.path(target).exists():
            return ()
        for _ in range(_ATTEMPTS):
            try:
                old = files.replace(self.path(target), join(after), self._trust)
            except MemoryUnreadable:
                # The change was never made, and must not be restored.
                self._histories[target].append([self._change(target, UNDO, after, on_disk)])
                raise
            theirs = parse(old.text) if old else ()
            if not old or not theirs or theirs == on_disk:
                break
            merged = self._restored(target, old)
            if merged == after:
                break
            slipped.append(attrs.evolve(self._change(target, OUTSIDE, after, merged), slipped=True))
            self._histories[target].append(slipped[-1:])
            on_disk, after = after, merged
        return tuple(slipped)

    def _archive(self, target: Target, evicted: Entries) -> None:
        head = {"when": self._clock.now().isoformat(), "target": target.value, "action": "add_overflow"}
        lines = [json.dumps({**head, "entry": entry}, ensure_ascii=False) for entry in evicted]
        if lines:
            # No model ever sees the archive, so it needs no trust.
            files.append(self.folder / ARCHIVE_FILE, lines, BELIEVE_ALL)

    def _forget_archived(self, targets: Targets) -> None:
        """Drop the archived entries of the targets; those of the other target stay, if there are any."""
        path, kept = self.folder / ARCHIVE_FILE, set(Target) - set(targets)
        lines = files.read_lines(path, BELIEVE_ALL) if kept else []
        if others := [line for line in lines if _archived_target(line) in kept]:
            files.overwrite(path, "".join(f"{line}\n" for line in others), BELIEVE_ALL)
        else:
            files.remove(path)

    def _change(
        self, target: Target, action: str, before: Entries, after: Entries, *, undoes: str | None = None
    ) -> Change:
        now = self._clock.now()
        return Change(when=now, target=target, action=action, before=before, after=after, undoes=undoes)

    def _page(self, target: Target, entries: Entries) -> Page:
        return Page(target=target, entries=entries, limit=self._limits[target])


def fault(read: Callable[[], object]) -> MemoryUnreadable | None:
    """Return the error of reading, or `None`."""
    try:
        read()
    except MemoryUnreadable as error:
        return error
    return None


def _archived_target(line: str) -> str | None:
    """Return the target of an archived entry; `None` for a line that a crash cut off."""
    try:
        return str(json.loads(line)["target"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _never_came(last: Change, entries: Entries, found: files.FileContent) -> bool:
    """Whether a crash between history and file kept the last change from the file: it is older than the change."""
    return last.before == entries and found.there and found.written <= last.when.timestamp()
