"""Copies the files of curated memory into a backup, checks the copy, and brings it back or merges it.

Each folder is copied under its lock, so its files are of one moment. A merge adds the entries that the copy has and the
memory never had: an entry that was removed or changed since stays so, as far as the history goes back.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks_curated import files
from beaver_hooks_curated.approvals import FILE as PENDING_FILE
from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import BOTH, MOST_ENTRIES, Entries, Page, Target, size
from beaver_hooks_curated.errors import CuratedError, EditRefused, MemoryUnreadable, MemoryUnwritable
from beaver_hooks_curated.folders import explained, locked
from beaver_hooks_curated.history import Change, history_path, merge
from beaver_hooks_curated.layout import USERS, Layout
from beaver_hooks_curated.store import ARCHIVE_FILE, BELIEVE_ALL, MemoryStore, fault
from beaver_hostspecs import (
    BACKUP_PARTS,
    PERSON_PART,
    PROJECT_PART,
    BackupReport,
    FileTrust,
    RestoreReport,
    RestoreRequest,
    StateBackup,
)
from beaver_toolkit.files import create_once, open_regular

PATIENCE = 30.0
"""Seconds that a backup waits for processes which write: no turn waits for it."""

RESTORE = "restore"
"""The action of a merge in the history."""

RESTORED = "restored"
"""In the name of a text that a merge has left beside the memory."""

_FILES = (
    ARCHIVE_FILE,
    PENDING_FILE,
    *(each.file_name for each in Target),
    *(history_path(Path(), each).name for each in Target),
    *(f"{each.name}.*-*" for each in Target),
)


@attrs.define
class _Merged:
    """The result of a merge so far."""

    added: Counter[str] = attrs.field(factory=Counter)
    present: Counter[str] = attrs.field(factory=Counter)
    conflicts: list[str] = attrs.field(factory=list)

    def report(self) -> RestoreReport:
        return RestoreReport(added=+self.added, present=+self.present, conflicts=self.conflicts)


class CuratedBackup:
    """Copies the memories of a layout.

    Args:
        layout: the memories.
        trust: records the files that are restored.
    """

    def __init__(self, layout: Layout, trust: FileTrust) -> None:
        self._layout = layout
        self._trust = trust

    def functions(self) -> StateBackup:
        """Return the functions of this backup."""
        return StateBackup(write=self.write, check=self.check, restore=self.restore)

    def write(self, folder: Path) -> list[str]:
        """Copy the files of the project and of the person; return sentences about files that are left out.

        Raises:
            CuratedError: a folder is being written, or a file cannot be read or copied.
        """
        left_out: list[str] = []
        for part, root in self._roots().items():
            for source in _folders(root):
                with locked(source, PATIENCE):
                    left_out += [
                        f"{path} {why}, so it is not in the backup."
                        for path in own_files(source)
                        if (why := self._copied(path, folder / part / path.relative_to(root)))
                    ]
        return left_out

    def _copied(self, path: Path, copy: Path) -> str:
        """Copy a file; return why it is left out, or an empty text."""
        if not stat.S_ISREG(path.lstat().st_mode):
            return "is not a regular file"
        content = content_of(path)
        # A restored file is believed, so a backup must not launder one that came with a repository.
        if content and path.name != ARCHIVE_FILE and not self._trust.believes(path, content):
            return "may have come with a repository and is not confirmed"
        write_new(copy, content)
        return ""

    def check(self, folder: Path) -> BackupReport:
        """Read each file of a copy as the memory would."""
        held: Counter[str] = Counter()
        problems: list[str] = []
        for part in BACKUP_PARTS:
            for source in _folders(folder / part):
                store = self._layout.copy_at(source)
                for target in BOTH:
                    found = store.faults(target)
                    problems += [str(each) for each in found]
                    if not found:
                        held["entries"] += len(store.read(target).page.entries)
                        held["changes"] += len(store.changes(target))
                problems += [str(error)] if (error := fault(store.queue.all)) else []
        return BackupReport(held=+held, problems=problems)

    def restore(self, request: RestoreRequest) -> RestoreReport:
        """Write the files of a copy, or merge them.

        Raises:
            CuratedError: without `merge`, a file is there; or it cannot be read or written.
        """
        merged = _Merged()
        roots = self._roots()
        for part in BACKUP_PARTS:
            root = roots.get(part, roots[PROJECT_PART])
            for source in _folders(request.folder / part):
                target = root / source.relative_to(request.folder / part)
                if request.merge:
                    self._merge(source, target, merged, dry=request.dry_run)
                else:
                    self._put(source, target, merged, dry=request.dry_run)
        return merged.report()

    def _roots(self) -> dict[str, Path]:
        layout = self._layout
        shared = {} if layout.person == layout.folder else {PERSON_PART: layout.person}
        return {PROJECT_PART: layout.folder, **shared}

    # --- Into an empty folder -----------------------------------------------------------------------------------

    def _put(self, source: Path, target: Path, merged: _Merged, *, dry: bool) -> None:
        taken = [path for path in own_files(source) if os.path.lexists(target / path.name)]
        if taken:
            raise MemoryUnwritable(
                f"The file {target / taken[0].name} is there already; move it away, or restore with --merge."
            )
        copy = self._layout.copy_at(source)
        merged.added["entries"] += sum(len(copy.read(each).page.entries) for each in BOTH)
        if not dry:
            with self._layout.at(target).locked():
                for path in _in_order(source):
                    self._create(path, target / path.name)

    def _create(self, source: Path, path: Path) -> None:
        content = content_of(source)
        if path.name != ARCHIVE_FILE:
            self._trust.record(path, content)
        with explained(path):
            if not create_once(path, content):
                raise MemoryUnwritable(f"The file {path} is there already; move it away, or restore with --merge.")

    # --- Into another memory ------------------------------------------------------------------------------------

    def _merge(self, source: Path, folder: Path, merged: _Merged, *, dry: bool) -> None:
        copy, store = self._layout.copy_at(source), self._layout.at(folder)
        for target in BOTH:
            if _holds(source, target):
                self._merge_target(copy, store, target, merged, dry=dry)
        memories = {name for target in BOTH for name in (target.file_name, history_path(source, target).name)}
        for path in own_files(source):
            if path.name not in memories:
                self._merge_file(path, folder / path.name, store, merged, dry=dry)

    def _merge_target(
        self, copy: MemoryStore, store: MemoryStore, target: Target, merged: _Merged, *, dry: bool
    ) -> None:
        ours, there = copy.read(target).page.entries, store.read(target).page
        if not _holds(store.folder, target):
            merged.added["entries"] += len(ours)
            if not dry:
                with store.locked():
                    for path in (history_path(copy.folder, target), copy.path(target)):
                        if path.exists():
                            self._create(path, store.folder / path.name)
            return
        base = _last_common(copy.changes(target), store.changes(target))
        plan = partial(_added, base=base, ours=ours)
        try:
            after = plan(there).entries
            if not dry and after != there.entries:
                after = store.write(target, plan, action=RESTORE).edit.entries
        except EditRefused as error:
            merged.conflicts.append(f"{store.path(target)}: {error}{self._kept(copy, store, target, dry=dry)}")
            return
        merged.added["entries"] += len(after) - len(there.entries)
        merged.present["entries"] += len(set(ours) & set(there.entries))
        stays = [each for each in ours if each not in after]
        if stays:
            merged.conflicts.append(
                f"{store.path(target)}: entries that were removed or changed since stay so ({len(stays):,})."
            )

    def _kept(self, copy: MemoryStore, store: MemoryStore, target: Target, *, dry: bool) -> str:
        """Leave the copied text beside a memory that has no room for it; return the sentence about it."""
        if dry:
            return ""
        path = files.beside(store.path(target), RESTORED)
        with store.locked():
            self._create(copy.path(target), path)
        return f" The text of the backup is in {path}."

    def _merge_file(self, source: Path, path: Path, store: MemoryStore, merged: _Merged, *, dry: bool) -> None:
        """Bring back a file beside the memories: the archive line by line, any other one only if it is missing."""
        if not os.path.lexists(path):
            merged.added["files"] += 1
            if not dry:
                with store.locked():
                    self._create(source, path)
        elif path.name == ARCHIVE_FILE:
            there = set(files.read_lines(path, BELIEVE_ALL))
            lines = [line for line in files.read_lines(source, BELIEVE_ALL) if line not in there]
            merged.added["archived entries"] += len(lines)
            if lines and not dry:
                with store.locked():
                    files.append(path, lines, BELIEVE_ALL)
        elif content_of(path) == content_of(source):
            merged.present["files"] += 1
        else:
            merged.conflicts.append(f"{path} differs from the backup, and stays as it is.")


def _added(page: Page, *, base: Entries, ours: Entries) -> Edit:
    """Return the edit that adds the entries of a copy which are not in `base`: those the memory never had."""
    after = merge(base, (*base, *ours), page.entries)
    if after != page.entries and (size(after) > page.limit or len(after) > MOST_ENTRIES):
        raise EditRefused(
            f"together they would be {size(after):,} of {page.limit:,} characters and {len(after):,} of"
            f" {MOST_ENTRIES:,} entries, so nothing was added.",
            kind="overflow",
        )
    return Edit(entries=after)


def _last_common(copied: tuple[Change, ...], there: tuple[Change, ...]) -> Entries:
    """Return the last state that both histories know; nothing for memories with different histories."""
    known = {each.id for each in there}
    return next((each.after for each in reversed(copied) if each.id in known), ())


def _folders(root: Path) -> Iterator[Path]:
    """Yield a folder of curated memory and those of its users, as far as they exist."""
    for folder in (root, *sorted((root / USERS).glob("*/"))):
        if folder.is_dir() and not folder.is_symlink():
            yield folder


def own_files(folder: Path) -> list[Path]:
    """Return the files of a folder: memories, histories, archive, waiting writes, texts kept aside."""
    return sorted(each for pattern in _FILES for each in folder.glob(pattern))


def _in_order(folder: Path) -> list[Path]:
    """Return the files in the order in which they are written: a memory after its history."""
    memories = {each.file_name for each in Target}
    return sorted(own_files(folder), key=lambda path: path.name in memories)


def _holds(folder: Path, target: Target) -> bool:
    return os.path.lexists(folder / target.file_name) or os.path.lexists(history_path(folder, target))


def content_of(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        MemoryUnreadable: it cannot be read.
    """
    try:
        with open_regular(path, follow_links=False) as file:
            return file.read()
    except OSError as error:
        raise MemoryUnreadable(f"{path} cannot be read ({error.strerror}); make it readable.") from error


def write_new(path: Path, content: bytes) -> None:
    """Make a private file, and its folder if it is missing.

    Raises:
        CuratedError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_once(path, content)
    except OSError as error:
        raise CuratedError(
            f"{path} cannot be written ({error.strerror}); make room, or name another folder."
        ) from error
