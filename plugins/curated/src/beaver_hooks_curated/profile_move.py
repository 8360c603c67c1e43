"""Moves the profile of a project into the one that the user's projects share.

The order: the entries are merged into the shared file, durably; then the history and the file of the project get other
names. Until the last of these steps the project shows its own file, so a move that was interrupted is made again.
"""

import os
from functools import partial
from pathlib import Path

import attrs

from beaver_hooks_curated import files
from beaver_hooks_curated.edits import Edit
from beaver_hooks_curated.entries import MOST_ENTRIES, Entries, Page, Target, size, tidy
from beaver_hooks_curated.errors import EditRefused
from beaver_hooks_curated.history import history_path
from beaver_hooks_curated.rejected_files import MOVED
from beaver_hooks_curated.store import BELIEVE_ALL, MemoryStore, WriteResult

MOVE = "move"
"""The action of a move in the history."""


@attrs.frozen(kw_only=True)
class Move:
    """The result that a move would have.

    Attributes:
        source: the file of the project.
        target: the file that projects share.
        added: the entries that the shared file gets.
        present: the entries of the project that the shared file holds already.
        page: the shared profile after the move.
    """

    source: Path
    target: Path
    added: Entries = attrs.field(repr=False)
    present: Entries = attrs.field(repr=False)
    page: Page


@attrs.frozen(kw_only=True)
class Moved:
    """A move that was made.

    Attributes:
        written: the write into the shared file.
        kept: the new paths of the project's file and its history, as far as they existed.
    """

    written: WriteResult
    kept: tuple[Path, ...]


def preview(own: MemoryStore, shared: MemoryStore) -> Move:
    """Return the result of moving the profile of `own` into that of `shared`.

    Raises:
        EditRefused: it does not fit.
        MemoryUnreadable: one of the files cannot be read, or waits to be confirmed.
    """
    entries, page = own.read(Target.USER).page.entries, shared.read(Target.USER).page
    return Move(
        source=own.path(Target.USER),
        target=shared.path(Target.USER),
        added=tuple(each for each in entries if each not in page.entries),
        present=tuple(each for each in entries if each in page.entries),
        page=attrs.evolve(page, entries=_merged(page, entries=entries).entries),
    )


def move(own: MemoryStore, shared: MemoryStore, expected: Move) -> Moved:
    """Make the move that the user has seen.

    Raises:
        EditRefused: one of the files was changed in the meantime, or it does not fit.
        CuratedError: a file cannot be read or written; both are as they were.
    """
    with own.locked():
        found = preview(own, shared)
        if found != expected:
            raise _stale()
        plan = partial(_merged, entries=(*found.present, *found.added))
        before = files.read(found.source, BELIEVE_ALL).text
        written = shared.write(Target.USER, plan, action=MOVE)
        return Moved(written=written, kept=_put_aside(own, before))


def _merged(page: Page, *, entries: Entries) -> Edit:
    merged = tidy((*page.entries, *entries))
    if merged != page.entries and (size(merged) > page.limit or len(merged) > MOST_ENTRIES):
        raise EditRefused(
            f"Together the two profiles would be {size(merged):,} of {page.limit:,} characters and {len(merged):,} of "
            f"{MOST_ENTRIES:,} entries; nothing was moved. Shorten one of them, for example by `beaver memory curated "
            "edit user`, or raise `memory.curated.userCharLimit`.",
            kind="overflow",
        )
    return Edit(entries=merged)


def _put_aside(own: MemoryStore, before: str) -> tuple[Path, ...]:
    """Rename the files of the project's profile, of which `before` was merged; return their new paths."""
    path = own.path(Target.USER)
    aside = files.beside(path, MOVED)
    names = {history_path(own.folder, Target.USER): aside.with_suffix(".history.jsonl"), path: aside}
    there = {old: new for old, new in names.items() if os.path.lexists(old)}
    for old, new in there.items():
        files.rename(old, new)
    if files.read(aside, BELIEVE_ALL).text != before:
        # The user has saved another text since, which the shared file lacks.
        files.rename(aside, path)
        raise _stale()
    return tuple(there.values())


def _stale() -> EditRefused:
    return EditRefused(
        "One of the two files was changed in the meantime, so what would be moved is not what was shown; the project "
        "keeps its own profile. Repeat the command.",
        kind="stale",
    )
