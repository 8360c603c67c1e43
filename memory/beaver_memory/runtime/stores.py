"""Opens the stores of a memory, wherever it lies. Blocking."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from beaver_memory.engine import INDEXES
from beaver_memory.errors import StoreError
from beaver_memory.layers import Personal
from beaver_memory.runtime.profile import DATABASE, Location, PostgresLocation, Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.troubles import COMMITS, DAMAGE, PERSONAL, SQLITE_VEC, STORE
from beaver_memory.search.nearest import TableSearch
from beaver_memory.store.in_memory import InMemoryStore
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.protocol import SingleStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.views import Reach


class DamageMark:
    """The mark of one database. Where no file can be made, the next reader finds the damage anew.

    Args:
        database: the database.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f".{database.name}.damaged")

    @property
    def is_set(self) -> bool:
        """Whether damage was found and not mended."""
        return self._path.exists()

    def set(self) -> None:
        """Set the mark."""
        with contextlib.suppress(OSError):
            self._path.touch(mode=0o600)

    def clear(self) -> None:
        """Remove the mark."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def damage_marks(location: Location) -> tuple[DamageMark, ...]:
    """Return the marks of the databases in files: that of the project, and that of the person."""
    if not isinstance(location, SqliteLocation):
        return ()
    paths = dict.fromkeys((location.database, location.person_folder / DATABASE))
    return tuple(map(DamageMark, paths if location.database_path is None else (location.database,)))


@attrs.frozen(kw_only=True)
class OpenStores:
    """The open stores of a memory.

    Attributes:
        store: of the memories.
        personal: the memories of the person, if they lie in a database of their own.
        nearest: the search of nearest vectors that replaces the indexes.
        indexes: the folder of the saved indexes; `None` to save none.
    """

    store: SingleStore
    personal: Personal | None = None
    nearest: TableSearch | None = None
    indexes: Path | None = None


def open_stores(profile: Profile, location: Location, services: RuntimeServices) -> OpenStores:
    """Open the stores of a memory.

    Raises:
        StoreError: the database cannot be used.
    """
    if isinstance(location, SqliteLocation):
        return _sqlite(profile, location, services)
    if isinstance(location, PostgresLocation):
        return _postgres(location, services)
    return OpenStores(store=InMemoryStore(location.database))


def indexes_of(database: Path) -> Path:
    """Return the folder of a database's indexes: beside it, and a separate one for each database."""
    return database.parent / (INDEXES if database.name == DATABASE else f"{database.name}-{INDEXES}")


def _sqlite(profile: Profile, location: SqliteLocation, services: RuntimeServices) -> OpenStores:
    with contextlib.ExitStack() as opened:
        store = SqliteStore.open(
            location.database, damaged=_damage_told(services, location.database), lost=_loss_told(services)
        )
        opened.callback(store.close)
        found = OpenStores(
            store=store,
            personal=_personal(profile, location, services),
            nearest=_nearest(profile, store, services),
            indexes=indexes_of(location.database),
        )
        opened.pop_all()
    return found


def _postgres(location: PostgresLocation, services: RuntimeServices) -> OpenStores:
    """Return the store, which connects when it is first used.

    It saves no indexes: a memory that another machine forgets would stay in them.
    """

    def told(error: StoreError | None) -> None:
        if error is None:
            services.troubles.ended(STORE, services.report)
            return
        services.trace("memory_store_unavailable", category=error.category)
        services.report.event("memory_store_unavailable", category=error.category)
        services.troubles.began(STORE, error.category, services.report)

    return OpenStores(store=postgres_store(location, told=told, clock=services.clock))


def postgres_store(location: PostgresLocation, **options: Any) -> PostgresStore:
    """Return the store of a location, which connects when it is first used; `options` are those of `Connector`."""
    return PostgresStore.open(
        location.url,
        schema=location.schema,
        connections=location.connections,
        connect_seconds=location.connect_seconds,
        later=True,
        **options,
    )


def _personal(profile: Profile, location: SqliteLocation, services: RuntimeServices) -> Personal | None:
    """Return the layer of the person's memories, or `None` if one database holds all memories."""
    path = location.person_folder / DATABASE
    if location.database_path is not None or os.path.realpath(path) == os.path.realpath(location.database):
        return None

    def told(error: StoreError | None) -> None:
        if error is None:
            services.troubles.ended(PERSONAL, services.report)
            return
        services.trace("personal_memory_unavailable", category=error.category)
        services.report.event("memory_personal_unavailable", category=error.category)
        services.troubles.began(PERSONAL, error.category, services.report)

    store = PersonalStore(
        path, told=told, clock=services.clock, damaged=_damage_told(services, path), lost=_loss_told(services)
    )
    return Personal(
        store=store,
        indexes=indexes_of(path),
        nearest=lambda each: _nearest(profile, each, services),
        reach=Reach(location.tenant, location.project),
    )


def _damage_told(services: RuntimeServices, database: Path) -> Callable[[int], None]:
    """Return a function that reports each row that fails its checksum; report damage that an earlier process found."""
    mark = DamageMark(database)
    if mark.is_set:
        services.troubles.began(DAMAGE, "rows", services.report)

    def told(count: int) -> None:
        mark.set()
        services.trace("memory_row_damaged", count=count)
        if count == 1:
            services.report.event("memory_rows_damaged")
        services.troubles.began(DAMAGE, "rows", services.report)

    return told


def _loss_told(services: RuntimeServices) -> Callable[[int], None]:
    """Return a function that reports acknowledged commits that are missing."""

    def told(commits: int) -> None:
        services.trace("memory_commits_missing", commits=commits)
        services.report.event("memory_commits_missing", commits=commits)
        services.troubles.began(COMMITS, "missing", services.report)

    return told


def _nearest(profile: Profile, store: SqliteStore, services: RuntimeServices) -> TableSearch | None:
    """Return the sqlite-vec search, if configured; if it fails, the report says so and the index is used."""

    def told(trouble: str | None) -> None:
        if trouble is None:
            services.troubles.ended(SQLITE_VEC, services.report)
            return
        services.trace("sqlite_vec_unavailable", category=trouble)
        services.report.event("memory_sqlite_vec_unavailable", category=trouble)
        services.troubles.began(SQLITE_VEC, trouble, services.report)

    if profile.vectors != "sqlite-vec":
        return None
    tables = TableSearch(store.vec_tables(), told)
    tables.begin()
    return tables
