"""The local memory as the plugin uses it: an open engine, recall, and upkeep. Blocking."""

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from beaver_hooks_local.embedders import Embedders, make_embedders, remember
from beaver_hooks_local.health import Troubles
from beaver_hooks_local.recall.recaller import Recaller
from beaver_hooks_local.settings import LocalSettings
from beaver_hostspecs import Clock, Report
from beaver_memory.embedding.protocol import Embedder, Trace
from beaver_memory.engine import DATABASE, INDEXES, MemoryEngine
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.layers import BATCH, Personal
from beaver_memory.patterns import parsed
from beaver_memory.query import Answer, Query
from beaver_memory.records import Scope
from beaver_memory.search.nearest import TableSearch
from beaver_memory.store.joint import JointStore
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_toolkit.workers import THREADS

GLOBAL_TYPES = frozenset({"preference"})
"""Types of memories that hold in all projects."""

MOST_TOUCHED = 10_000
"""Ids of recalled memories that are kept until `write_touches` stores them."""

FITS = 0.01
"""The lowest score of a memory that fits a search; the date alone gives half of it."""

EMBEDDER = "embedder"
"""The name of the trouble while the configured embedder is unavailable; it lasts until the memory is reopened."""


SQLITE_VEC = "sqlite_vec"
"""The name of the trouble while the configured extension cannot be used."""

PERSONAL = "personal_memory"
"""The name of the trouble while the person's database is unavailable; only memories of the project are found then."""


@attrs.frozen(kw_only=True)
class Surroundings:
    """The folders and services that an open memory uses.

    Attributes:
        state_folder: the plugin's own folder for the project.
        environment: holds the credentials.
        clock: the source of time.
        trace: called at every step.
        troubles: the current troubles.
        report: for events outside turns.
        reference_tokens: the most tokens of references that the host shows in a turn, or `None`.
        person_folder: the plugin's own folder for the person; `state_folder` unless given.
    """

    state_folder: Path
    environment: Mapping[str, str]
    clock: Clock
    trace: Trace
    troubles: Troubles
    report: Report
    reference_tokens: int | None = None
    person_folder: Path = attrs.field(default=attrs.Factory(lambda here: here.state_folder, takes_self=True))

    @property
    def model_folders(self) -> tuple[Path, ...]:
        """The folders of embedding models: of the person, then the one where an earlier version installed them."""
        return self.person_folder, self.state_folder


class LocalMemory:
    """An open memory. Thread-safe; every method may wait for a disk.

    Args:
        engine: of the memory; `close` closes it.
        settings: of the plugin.
        here: its folders and services.
        embedder: the configured embedder, if it is available.

    Attributes:
        recaller: recalls before prompts.
    """

    def __init__(
        self, engine: MemoryEngine, settings: LocalSettings, here: Surroundings, embedder: Embedder | None = None
    ) -> None:
        self.engine, self.settings = engine, settings
        self.clock, self.trace, self.troubles = here.clock, here.trace, here.troubles
        self.recaller = Recaller(
            engine, settings, clock=here.clock, trace=here.trace, troubles=here.troubles, most=here.reference_tokens
        )
        self._folder, self._embedder = here.state_folder, embedder
        self._of_project = isinstance(engine.store, JointStore)
        self._touched: set[int] = set()
        self._lock = threading.Lock()

    def default_scope(self, type_: str, project: str) -> Scope:
        """Return the scope of a new memory whose writer gives none.

        A preference is global. Any other memory belongs to the named project, or to the project whose database this
        is; without either it is global.
        """
        return "project" if (project or self._of_project) and type_ not in GLOBAL_TYPES else "global"

    def recalled(self, ids: Iterable[int]) -> None:
        """Keep the ids of recalled memories until `write_touches`."""
        with self._lock:
            if len(self._touched) < MOST_TOUCHED:
                self._touched.update(ids)

    def write_touches(self) -> int:
        """Store which memories were recalled; return how many."""
        with self._lock:
            ids, self._touched = self._touched, set()
        if ids:
            self.engine.store.touch(sorted(ids), now=self.clock.now())
        return len(ids)

    def embed_some(self) -> int:
        """Embed a batch of memories that are not embedded yet; return how many.

        Raises:
            EmbeddingError: the embedder fails.
            OSError: all memories are embedded, and the record of the embedder cannot be written.
        """
        done = self.engine.embed(limit=BATCH)
        if not done and self._embedder is not None:
            remember(self.settings.embedding, self._embedder, self._folder)
        return done

    def search(self, text: str, filters: Filters, *, limit: int, max_tokens: int | None = None) -> Answer:
        """Return the best memories that fit a search, or the newest ones if it has no words.

        Its `"quoted phrases"` and `prefix*` must be in each of them.
        """
        plain, patterns = parsed(text)
        query = Query(
            text=plain,
            patterns=patterns,
            filters=filters,
            limit=limit,
            max_tokens=max_tokens,
            minimum_score=FITS if text.strip() else 0.0,
            formula=self.settings.ranking.formula,
        )
        return self.engine.search(query)

    def close(self) -> None:
        """Store which memories were recalled, and close the engine."""
        try:
            self.write_touches()
        finally:
            self.engine.close()


def open_memory(settings: LocalSettings, here: Surroundings) -> LocalMemory:
    """Open the memory that the settings describe.

    If the embedder is unavailable, the report says so, and the memory searches by words alone.

    Raises:
        StoreError: the database cannot be used.
        ConfigurationError: the settings of the embedder do not fit.
    """
    here.trace("initializing_memory_store", given=settings.database_path is not None)
    embedders = make_embedders(
        settings.embedding, here.state_folder, here.environment, here.trace, folders=here.model_folders
    )
    _tell(embedders, here)
    path = settings.database_path or here.state_folder / DATABASE
    try:
        store = SqliteStore.open(path)
        engine = MemoryEngine(
            store,
            personal=_personal(settings, here),
            embedder=embedders.current,
            previous=embedders.previous,
            at_once=THREADS // 2,
            nearest=_nearest(settings, store, here),
            indexes=indexes_of(path),
            clock=here.clock,
            trace=here.trace,
        )
    except BaseException:
        for each in (embedders.current, embedders.previous):
            if each is not None:
                each.close()
        raise
    return LocalMemory(engine, settings, here, embedders.current)


def indexes_of(database: Path) -> Path:
    """Return the folder of a database's indexes: beside it, and a separate one for each database."""
    return database.parent / (INDEXES if database.name == DATABASE else f"{database.name}-{INDEXES}")


def _personal(settings: LocalSettings, here: Surroundings) -> Personal | None:
    """Return the layer of the person's memories, or `None` if one database holds all memories."""
    path = here.person_folder / DATABASE
    if settings.database_path is not None or os.path.realpath(path) == os.path.realpath(here.state_folder / DATABASE):
        return None

    def told(error: StoreError | None) -> None:
        if error is None:
            here.troubles.ended(PERSONAL, here.report)
            return
        here.trace("personal_memory_unavailable", category=error.category)
        here.report.event("memory_personal_unavailable", category=error.category, remedy=str(error))
        here.troubles.began(PERSONAL, error.category, here.report)

    store = PersonalStore(path, told=told, clock=here.clock)
    return Personal(store=store, indexes=indexes_of(path), nearest=lambda each: _nearest(settings, each, here))


def _nearest(settings: LocalSettings, store: SqliteStore, here: Surroundings) -> TableSearch | None:
    """Return the sqlite-vec search, if configured; if it fails, the report says so and the index is used."""

    def told(trouble: str | None) -> None:
        if trouble is None:
            here.troubles.ended(SQLITE_VEC, here.report)
            return
        here.trace("sqlite_vec_unavailable", category=trouble)
        here.report.event("memory_sqlite_vec_unavailable", category=trouble)
        here.troubles.began(SQLITE_VEC, trouble, here.report)

    if settings.vectors != "sqlite-vec":
        return None
    tables = TableSearch(store.vec_tables(), told)
    tables.begin()
    return tables


def _tell(embedders: Embedders, here: Surroundings) -> None:
    """Report the embedder, or why it is unavailable."""
    error = embedders.trouble
    if error is not None:
        facts = {"provider": error.provider, "category": error.category, "remedy": str(error)}
        here.report.event("memory_embedder_unavailable", **facts)
        here.troubles.began(EMBEDDER, error.category, here.report)
    identity = None if embedders.current is None else embedders.current.identity
    here.trace(
        "memory_embedding_configured",
        provider=identity.provider if identity else "none",
        model=identity.model if identity else None,
        dimensions=identity.dimensions if identity else None,
        changed=embedders.previous is not None,
    )
