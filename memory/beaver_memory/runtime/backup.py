"""Copies the databases of a memory into a backup, checks the copies, and puts them back. Blocking.

Each database is copied as it was at one moment, while any process may write to it. The saved indexes are no part of a
backup: they are made anew from the database.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
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
from beaver_memory.runtime.backup_merge import Merge
from beaver_memory.runtime.profile import DATABASE, InMemoryLocation, Location, SqliteLocation
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.sqlite.preparation import PACKAGE
from beaver_toolkit.sqlite.copies import check_free, copy_moment, put_in_place
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError
from beaver_toolkit.sqlite.losses import losses_of
from beaver_toolkit.sqlite.migrations import read_migrations

ON_SERVER = "The memories in PostgreSQL are not in this backup: copy their database with pg_dump."


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
