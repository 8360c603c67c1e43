"""Copies the databases of a memory into a backup, checks the copies, and puts them back. Blocking.

Each database is copied as it was at one moment, while any process may write to it. The saved indexes are no part of a
backup: they are made anew from the database.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import attrs

from beaver_hostspecs import (
    BACKUP_PARTS,
    PERSON_PART,
    PROJECT_PART,
    BackupReport,
    Clock,
    RestoreReport,
    RestoreRequest,
    StateBackup,
    SystemClock,
)
from beaver_memory.errors import StoreError
from beaver_memory.filters import every_memory
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.migration_rows import PAGE, changed_rows
from beaver_memory.runtime.profile import DATABASE, InMemoryLocation, Location, SqliteLocation
from beaver_memory.search.terms import Analyser
from beaver_memory.store.bounds import LARGEST
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_memory.writer import Writer
from beaver_toolkit.sqlite.copies import check_free, copy_moment, put_in_place
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError
from beaver_toolkit.sqlite.losses import losses_of
from beaver_toolkit.sqlite.migrations import read_migrations

ON_SERVER = "The memories in PostgreSQL are not in this backup: copy their database with pg_dump."

MOST_NAMED = 20
"""Conflicts that are named; the others are counted."""

FORGOTTEN, CHANGED = "was forgotten since, and stays forgotten", "was changed since, and stays as it is"


@attrs.frozen(kw_only=True)
class MemoryBackup:
    """Copies the memory at a location.

    Attributes:
        location: the memory.
        clock: the source of time.
    """

    location: Location
    clock: Clock = attrs.field(factory=SystemClock)

    def functions(self) -> StateBackup:
        """Return the functions of this backup."""
        return StateBackup(write=self.write, check=self.check, restore=self.restore)

    def write(self, folder: Path) -> tuple[str, ...]:
        """Copy each database to `<part>/memory.db`; return sentences about memories that are not copied.

        Raises:
            StoreError: a database cannot be read, or its copy cannot be written.
        """
        for part, path in self._databases().items():
            if os.path.lexists(path):
                self._copy(path, folder / part / DATABASE)
        lost = [f"{path}: {loss}" for path in self._databases().values() for loss in losses_of(path)]
        return (*self._notes(), *lost)

    def check(self, folder: Path) -> BackupReport:
        """Read each copy whole: its pages, its rows by their checksums, its counts.

        Raises:
            StoreError: a copy cannot be read, or a newer version wrote it.
        """
        held: Counter[str] = Counter()
        problems: list[str] = []
        for path in copies_in(folder).values():
            counts, found = _examined(path)
            held.update(counts)
            problems += found
        return BackupReport(held=held, problems=problems)

    def restore(self, request: RestoreRequest) -> RestoreReport:
        """Put the copies in the places of the databases, or merge them into those that are there.

        Raises:
            StoreError: without `merge`, a database is there; or it is in use, or cannot be written.
        """
        if not isinstance(self.location, SqliteLocation):
            return RestoreReport(notes=self._notes())
        places, reports = self._databases(), []
        for part, copy in copies_in(request.folder).items():
            path = places.get(part, places[PROJECT_PART])
            if request.merge and os.path.lexists(path):
                reports.append(Merge(copy, path, now=self.clock.now()).run(dry=request.dry_run))
            else:
                reports.append(_placed(copy, path, dry=request.dry_run))
        return _together(reports)

    def _databases(self) -> Mapping[str, Path]:
        """Return the databases by their parts; none on a server and without a disk."""
        here = self.location
        if not isinstance(here, SqliteLocation):
            return {}
        found = {PROJECT_PART: here.database}
        person = here.person_folder / DATABASE
        if here.database_path is None and os.path.realpath(person) != os.path.realpath(here.database):
            found[PERSON_PART] = person
        return found

    def _copy(self, path: Path, copy: Path) -> None:
        try:
            if path.stat().st_size == 0:
                raise StoreError(path, "emptied")
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            database = Database.read(path, read_migrations(PACKAGE))
        except OSError as error:
            raise StoreError(copy, "cannot_open") from error
        except DatabaseError as error:
            raise StoreError(path, error.category) from error
        try:
            copy_moment(database.connection, copy)
        except DatabaseError as error:
            # The source is read only, so what lacks room is the copy.
            raise StoreError(copy if error.category == "disk_full" else path, error.category) from error
        finally:
            database.close()

    def _notes(self) -> tuple[str, ...]:
        return () if isinstance(self.location, SqliteLocation | InMemoryLocation) else (ON_SERVER,)


def copies_in(folder: Path) -> Mapping[str, Path]:
    """Return the copies of databases in a folder, by their parts."""
    return {part: path for part in BACKUP_PARTS if (path := folder / part / DATABASE).is_file()}


def _examined(path: Path) -> tuple[Mapping[str, int], Iterator[str]]:
    store = SqliteStore.open(path)
    try:
        figures, problems = store.stats(None), store.check(None)
    finally:
        store.close()
    counts = {
        "memories": figures["memories"],
        "forgotten memories": figures["forgotten"],
        "embeddings": sum(figures["embeddings"].values()),
    }
    return counts, iter(problems)


def _placed(copy: Path, path: Path, *, dry: bool) -> RestoreReport:
    counts, _ = _examined(copy)
    try:
        check_free(path)
        if not dry:
            put_in_place(copy, path)
    except DatabaseError as error:
        raise StoreError(path, error.category) from error
    return RestoreReport(added=counts)


def _together(reports: list[RestoreReport]) -> RestoreReport:
    added: Counter[str] = Counter()
    present: Counter[str] = Counter()
    for each in reports:
        added.update(each.added)
        present.update(each.present)
    return RestoreReport(
        added=added,
        present=present,
        conflicts=[text for each in reports for text in each.conflicts],
        notes=list(dict.fromkeys(text for each in reports for text in each.notes)),
    )


class Merge:
    """Merges the copy of a database into a database.

    Args:
        copy: the copy, which may be brought to this version.
        path: the database, which other processes may use meanwhile.
        now: the moment of the merge.
    """

    def __init__(self, copy: Path, path: Path, *, now: datetime) -> None:
        self._copy_path, self._path, self._now = copy, path, now
        self._counts: Counter[str] = Counter()
        self._conflicts: list[str] = []

    def run(self, *, dry: bool) -> RestoreReport:
        """Add the missing memories; with `dry` count only."""
        copy = SqliteStore.open(self._copy_path)
        try:
            store = SqliteStore.open(self._path)
            try:
                self._merge(copy, store, dry=dry)
            finally:
                store.close()
        finally:
            copy.close()
        counts, conflicts = self._counts, self._conflicts
        more = [f"{len(conflicts) - MOST_NAMED:,} more memories differ."] if conflicts[MOST_NAMED:] else []
        return RestoreReport(
            added={"memories": counts["added"], "summaries": counts["summaries"]},
            present={"memories": counts["present"]},
            conflicts=[*conflicts[:MOST_NAMED], *more],
        )

    def _merge(self, copy: SqliteStore, store: SqliteStore, *, dry: bool) -> None:
        Writer(copy, Analyser())
        writer = Writer(store, Analyser())
        is_same = copy.identity == store.identity
        for owner in copy.known_owners():
            rows = {row.uid: row for row in changed_rows(store, owner)}
            ids = [each.id for each in changed_rows(copy, owner) if not self._is_known(each, rows, is_same=is_same)]
            for page in self._pages(copy, owner, ids):
                items = [writer.analysed(memory) for memory in page]
                lacking = [
                    item for item, there in zip(items, store.knows(items, now=self._now), strict=True) if not there
                ]
                self._counts["present"] += len(items) - len(lacking)
                # Two of them may be the same memory for the store.
                kept = [] if dry else store.remember(lacking, now=self._now, mention=False)
                self._counts["added"] += len(lacking) if dry else sum(each.outcome == "stored" for each in kept)
            self._summaries(copy, store, owner, dry=dry)

    def _pages(self, copy: SqliteStore, owner: Owner, ids: Sequence[int]) -> Iterator[list[Memory]]:
        filters = every_memory([owner], self._now)
        for start in range(0, len(ids), PAGE):
            yield copy.get(ids[start : start + PAGE], filters)

    def _is_known(self, row: IndexRow, rows: Mapping[bytes, IndexRow], *, is_same: bool) -> bool:
        """Count a memory that is known by its uid; `is_same` in the database that the copy was made of."""
        here = rows.get(row.uid)
        if row.gone or here is None:
            return row.gone
        if here.gone:
            self._conflicts.append(f"Memory {here.id} {FORGOTTEN}.")
        elif is_same and here.updated != row.updated:
            self._conflicts.append(f"Memory {here.id} {CHANGED}.")
        else:
            self._counts["present"] += 1
        return True

    def _summaries(self, copy: SqliteStore, store: SqliteStore, owner: Owner, *, dry: bool) -> None:
        there = {(each.session, each.agent) for each in store.summaries(owner, limit=LARGEST)}
        for each in copy.summaries(owner, limit=LARGEST):
            if (each.session, each.agent) not in there:
                self._counts["summaries"] += 1
                if not dry:
                    store.summarise(owner, each)
