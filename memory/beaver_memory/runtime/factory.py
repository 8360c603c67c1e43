"""Opens the engine of a memory: its embedders, its databases and the search of nearest vectors. Blocking."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import attrs

from beaver_memory.embedding.protocol import Embedder
from beaver_memory.engine import INDEXES, MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.layers import Personal
from beaver_memory.runtime.embedders import Embedders, make_embedders
from beaver_memory.runtime.profile import DATABASE, Profile, RuntimeServices, SqliteLocation
from beaver_memory.runtime.troubles import EMBEDDER, PERSONAL, SQLITE_VEC
from beaver_memory.search.nearest import TableSearch
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_toolkit.workers import THREADS


@attrs.frozen(kw_only=True)
class OpenEngine:
    """An open engine.

    Attributes:
        engine: the engine; `close` closes its store and its embedders.
        embedder: the configured embedder, if it is available.
        lacks: for each service that opening provides, why it is missing; empty if it is there.
    """

    engine: MemoryEngine
    embedder: Embedder | None
    lacks: Mapping[str, str]


def open_engine(profile: Profile, location: SqliteLocation, services: RuntimeServices) -> OpenEngine:
    """Open the engine that a profile describes.

    If the embedder is unavailable, the report says so, and the engine searches by words alone.

    Raises:
        StoreError: the database cannot be used.
        ConfigurationError: the settings of the embedder do not fit.
    """
    services.trace("initializing_memory_store", given=location.database_path is not None)
    embedders = make_embedders(
        profile.embedding,
        location.state_folder,
        services.environment,
        services.trace,
        folders=location.model_folders,
    )
    _tell(embedders, services)
    with contextlib.ExitStack() as opened:
        for each in (embedders.current, embedders.previous):
            if each is not None:
                opened.callback(each.close)
        store = SqliteStore.open(location.database, migrating=services.migrating)
        opened.callback(store.close)
        engine = MemoryEngine(
            store,
            personal=_personal(profile, location, services),
            embedder=embedders.current,
            previous=embedders.previous,
            at_once=THREADS // 2,
            nearest=_nearest(profile, store, services),
            indexes=indexes_of(location.database),
            clock=services.clock,
            trace=services.trace,
        )
        # From here on the engine closes them.
        opened.pop_all()
    return OpenEngine(engine=engine, embedder=embedders.current, lacks={"embedder": _lack(embedders)})


def indexes_of(database: Path) -> Path:
    """Return the folder of a database's indexes: beside it, and a separate one for each database."""
    return database.parent / (INDEXES if database.name == DATABASE else f"{database.name}-{INDEXES}")


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
        services.report.event("memory_personal_unavailable", category=error.category, remedy=str(error))
        services.troubles.began(PERSONAL, error.category, services.report)

    store = PersonalStore(path, told=told, clock=services.clock, migrating=services.migrating)
    return Personal(store=store, indexes=indexes_of(path), nearest=lambda each: _nearest(profile, each, services))


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


def _lack(embedders: Embedders) -> str:
    """Return why there is no embedder, or an empty text."""
    if embedders.trouble is not None:
        return f"it needs an embedder, and the configured one is unavailable ({embedders.trouble.category})"
    return "it needs an embedder, and none is configured" if embedders.current is None else ""


def _tell(embedders: Embedders, services: RuntimeServices) -> None:
    """Report the embedder, or why it is unavailable."""
    error = embedders.trouble
    if error is not None:
        facts = {"provider": error.provider, "category": error.category, "remedy": str(error)}
        services.report.event("memory_embedder_unavailable", **facts)
        services.troubles.began(EMBEDDER, error.category, services.report)
    identity = None if embedders.current is None else embedders.current.identity
    services.trace(
        "memory_embedding_configured",
        provider=identity.provider if identity else "none",
        model=identity.model if identity else None,
        dimensions=identity.dimensions if identity else None,
        changed=embedders.previous is not None,
    )
