"""The memory engine: adds, searches and forgets, without any host. Thread-safe; each method blocks until it is done."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import attrs
import numpy as np

from beaver_hostspecs import Clock, SystemClock
from beaver_memory.embedding.breaker import AT_ONCE, Breaker
from beaver_memory.embedding.calibration import BY_WORDS, Scale, TextLanguage, knows, scale_of
from beaver_memory.embedding.errors import EmbeddingError
from beaver_memory.embedding.protocol import Embedder
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters, every_memory
from beaver_memory.layers import BATCH, Layer, Personal, Trace
from beaver_memory.model_switch import ModelSwitch, model_of
from beaver_memory.patterns import Pattern
from beaver_memory.query import Answer, Query
from beaver_memory.records import Change, Kept, Memory, NewMemory, Owner
from beaver_memory.reranker import QueryVectors, RerankerName, TokenReranker
from beaver_memory.search import exact, late_interaction
from beaver_memory.search.candidates import Candidates, SearchSource, gather, width
from beaver_memory.search.formulas import FORMULAS, Ranked, Weights, fit, measured
from beaver_memory.search.index_cache import SMALL
from beaver_memory.search.nearest import Nearest
from beaver_memory.search.owner_index import Progress
from beaver_memory.search.select import SPARE, Choice, best_of, hits, holding_first
from beaver_memory.search.snapshot import Model
from beaver_memory.search.terms import Analyser
from beaver_memory.store.candidate_store import Wanted
from beaver_memory.store.joint import PERSONAL_IDS, JointStore
from beaver_memory.store.protocol import MemoryStore, SingleStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.views import ALL_PROJECTS, EVERYTHING, Project, Reach, Reaches
from beaver_memory.writer import Writer

DATABASE = "memory.db"
MOST_WAITING = 10_000
"""Waiting turns of an owner that forgetting looks at."""

ERASED_AT_ONCE = 500
"""Memories of an owner that one transaction erases: other writers wait for it."""

INDEXES = "index"

OUT_OF_MEMORY = "out_of_memory"
"""The reason why no index could be built."""

T = TypeVar("T")


@attrs.frozen(kw_only=True, eq=False)
class _Sought:
    """What a search looks for: for a store, as vectors, what cosines with these mean, and until when."""

    wanted: Wanted
    vectors: QueryVectors
    scale: Scale
    until: float


class MemoryEngine:
    """Stores, searches and forgets memories.

    Args:
        store: the store of the memories.
        personal: the database of global memories, if it is another one.
        embedder: turns texts into vectors; `None` to search by words alone.
        previous: the embedder before this one, if the model has changed: it answers until `embed` has embedded as many
            memories with the new one.
        at_once: how many queries are embedded at once; others wait a moment, and are then searched by words.
        nearest: finds the nearest vectors, in place of the indexes.
        small: memories of an owner up to which its index is built before its first search, even if the store finds
            candidates of a search by itself; beyond that the store answers while the index is built.
        indexes: the folder of the saved indexes, which make opening fast; `None` for none.
        reach: the part of the database that is the process's own; with what callers name, it is embedded.
        weights: the weights of the default formula.
        reranker: what ranks the first memories of a search again: `tokens` compares each token of the query with
            theirs, or `none`.
        token_weight: how far tokens take the place of the cosine, 0 to 1.
        clock: the source of time.
        trace: receives events, without any content: `trace(event, **facts)`.
    """

    def __init__(
        self,
        store: SingleStore,
        *,
        personal: Personal | None = None,
        embedder: Embedder | None = None,
        previous: Embedder | None = None,
        at_once: int = AT_ONCE,
        nearest: Nearest | None = None,
        small: int = SMALL,
        indexes: Path | None = None,
        reach: Reach = EVERYTHING,
        weights: Weights | None = None,
        reranker: RerankerName = "none",
        token_weight: float = late_interaction.WEIGHT,
        clock: Clock | None = None,
        trace: Trace | None = None,
    ) -> None:
        self._personal = personal
        self.store: MemoryStore = store if personal is None else JointStore(store, personal.store)
        self._weights = Weights() if weights is None else weights
        self._clock = SystemClock() if clock is None else clock
        self._trace = _nothing if trace is None else trace
        self._reranker = TokenReranker(self.store, self._clock, enabled=reranker == "tokens", weight=token_weight)
        self._analyser = Analyser()
        self._writer = Writer(self.store, self._analyser)
        # A process with a tenant, or a database of its own, begins with it; else turns name the tenants that it serves.
        theirs = EVERYTHING if personal is None else personal.reach
        own, persons = ([each] if each.tenant != "" else [] for each in (reach, theirs))
        self._home, self.reaches, self._theirs = reach, Reaches(*own), Reaches(*persons)

        self._own_layer = Layer(store, indexes, nearest, self._trace, self.reaches, small=small)
        self._personal_layer: Layer | None = None
        self._lock = threading.Lock()
        self._embedder, before = (
            None if each is None else Breaker(each, self._clock, at_once=at_once) for each in (embedder, previous)
        )
        self._serving = ModelSwitch(self._pending, self._embedder, before, self._clock, self._take_over)

    @classmethod
    def open(cls, folder: Path | str, **options: Any) -> Self:
        """Open the engine over an SQLite store in a folder, which is made if it is missing."""
        Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        options.setdefault("indexes", Path(folder) / INDEXES)
        return cls(SqliteStore.open(Path(folder) / DATABASE), **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Save the indexes, and close the store and the embedder. Closing again does nothing."""
        self._own_layer.close()
        if self._personal_layer is not None:
            self._personal_layer.close()
        self.store.close()
        self._serving.close()

    # --- Writing ------------------------------------------------------------------------------------------------

    def add(self, memories: NewMemory | Iterable[NewMemory]) -> list[int]:
        """Store memories, durably and all or none of them; return their ids.

        Searches find them by their words at once, and by their vectors after `embed`.
        """
        return self._writer.add(self._served(memories), now=self._clock.now())

    def remember(self, memories: NewMemory | Iterable[NewMemory], *, mention: bool = True) -> list[Kept]:
        """Store memories that are not stored yet, durably, all or none of them; return the outcome of each, in order.

        A memory that is stored already is mentioned once more; see `MemoryStore.remember`.
        """
        return self._writer.remember(self._served(memories), now=self._clock.now(), mention=mention)

    def supersede(self, memory: NewMemory, ids: Sequence[int], filters: Filters, *, at: datetime) -> Kept:
        """Store a memory and end the time in which others were true, in one transaction; see `MemoryStore.supersede`.

        Args:
            memory: the memory that holds.
            ids: the memories that held until now.
            filters: which of them the caller may change.
            at: the moment at which they end.
        """
        self._served(memory)
        return self._writer.supersede(memory, ids, filters, at=at, now=self._clock.now())

    def embed(self, *, limit: int = BATCH, owners: Iterable[Owner] | None = None) -> int:
        """Embed memories that have no embedding yet, at most `limit`; return how many were embedded.

        Raises:
            EmbeddingError: the embedder fails.
        """
        if self._embedder is None:
            return 0
        done, layers = 0, self._layers()
        for layer in layers:
            done += layer.embed(self._embedder, limit - done, owners, tokens=self._reranker.enabled)
        self._serving.look()
        model = model_of(self._serving.embedder())
        if model is not None:
            for layer in layers:
                layer.catch_up(model, owners)
        return done

    def pending(self, owners: Iterable[Owner] | None = None) -> int:
        """Return how many memories, of owners or of all, wait for the configured embedder; 0 without one."""
        if self._embedder is None:
            return 0
        models = [self._embedder.identity.key]
        if self._reranker.enabled and self._embedder.has_tokens:
            models.append(models[0] + late_interaction.MODEL)
        some = None if owners is None else [*owners]
        return max(self._pending(model, some) for model in models)

    def _pending(self, model: str, owners: Iterable[Owner] | None = None) -> int:
        return sum(layer.pending(model, owners) for layer in self._layers())

    def _served(self, memories: NewMemory | Iterable[NewMemory]) -> list[NewMemory]:
        """Return new memories as a list, whose places this process serves from now on."""
        found = [memories] if isinstance(memories, NewMemory) else list(memories)
        for each in found:
            self.serve(each.owner.tenant, each.project or None)
        return found

    def serve_home(self) -> None:
        """Embed the memories of the project of this process from now on."""
        if self._home.tenant is not None:
            self.serve(self._home.tenant, self._home.project)
        if self._personal is not None:
            self._theirs.add(self._personal.reach.tenant or "", self._personal.reach.project)

    def serve(self, tenant: str, project: Project) -> None:
        """Embed the memories of a project of a tenant from now on."""
        for each in (self.reaches, self._theirs):
            each.add(tenant, project)

    def probe(self) -> bool:
        """Probe a failed embedder, if a probe is due, so that no search has to; return whether it answered."""
        asked = self._serving.asked
        return asked is not None and asked.probe()

    def probe_in(self) -> float | None:
        """Return in how many seconds `probe` is due; `None` while no embedder is paused."""
        asked = self._serving.asked
        return None if asked is None else asked.probe_in()

    def change(self, id_: int, filters: Filters, *, event: str, **fields: Any) -> Memory | None:
        """Change a visible memory, its terms and its embedding; see `MemoryStore.change`."""
        return self._writer.change(id_, filters, event=event, now=self._clock.now(), fields=fields)

    def forget(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Erase visible memories, from all files, and the waiting turns that they rest on; return their ids."""
        now = self._clock.now()
        try:
            self._drop_waiting(ids, filters)
            gone = self.store.forget(ids, filters, now=now)
        except StoreError:
            # One of two databases may forget its part.
            with contextlib.suppress(StoreError):
                self.store.forget(ids, filters, now=now)
            with contextlib.suppress(StoreError):
                self._erase(ids, filters)
            raise
        self._erase(gone, filters)
        return gone

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row and file of an owner without memories; see `MemoryStore.drop_owner`."""
        self.store.drop_owner(owner)
        for layer in self._layers():
            layer.drop_owner(owner)

    def erase_owner(self, owner: Owner) -> None:
        """Erase all that is stored of an owner, from all databases and files, whatever its project and session.

        Damaged memories are erased too. The id of the owner stays, and of each memory that it existed and when it was
        forgotten: by these, other processes learn that the memories are gone.

        Raises:
            StoreError: a database cannot be written, or cannot read a memory; the others are erased then.
        """
        every = every_memory([owner], self._clock.now())
        for layer in self._layers():
            store = layer.store
            # First, because the capture of a waiting turn would bring memories back.
            store.queue.erase(owner, ALL_PROJECTS)
            ids = store.ids(owner)
            for begin in range(0, len(ids), ERASED_AT_ONCE):
                store.forget(ids[begin : begin + ERASED_AT_ONCE], every, now=self._clock.now())
            store.drop_summaries(owner)
            store.drop_capture_records(owner)
            layer.drop_owner(owner)
        # Last: one that SQLite cannot read is an error.
        for store in self.stores:
            damaged = [row.id for row in store.damaged(owner) if row.kind == "memory" and isinstance(row.id, int)]
            if damaged:
                store.forget(damaged, every, now=self._clock.now())

    def drop_evidence(self, memories: Iterable[Memory]) -> int:
        """Erase the excerpts of the turns that memories rest on, from all memories of these turns.

        An excerpt holds the words of each memory of its turn. Return how many memories had one.
        """
        turns: dict[Owner, set[str]] = {}
        for each in memories:
            if each.origin:
                turns.setdefault(each.owner, set()).add(each.origin)
        return sum(self.store.drop_evidence(*each, now=self._clock.now()) for each in turns.items())

    def mark_forgotten(self, memories: Iterable[Memory], texts_of: Callable[[Memory], Iterable[str]]) -> None:
        """Record the words of memories as forgotten, each in the database that holds it."""
        found: dict[tuple[bool, Owner], set[str]] = {}
        for each in memories:
            found.setdefault((self.is_joint and each.id > PERSONAL_IDS, each.owner), set()).update(texts_of(each))
        for layer in self._layers():
            for (is_personal, owner), texts in found.items():
                if is_personal is layer.is_personal:
                    layer.store.mark_forgotten(owner, texts)

    def was_forgotten(self, owner: Owner, text: str) -> bool:
        """Return whether an owner has forgotten the words of a text."""
        return bool(self.store.forgotten(owner, [text]))

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows of all databases tell of an owner, by place; see `SingleStore.holdings`."""
        return self.store.holdings(owner)

    def owners(self) -> list[Owner]:
        """Return the owners that have memories, of all tenants that this process serves."""
        return list(dict.fromkeys(owner for layer in self._layers() for owner in layer.owners(self._home)))

    @property
    def tenant(self) -> str | None:
        """The tenant of this process; `None` if the database holds no others' memories."""
        return self._home.tenant

    @property
    def stores(self) -> list[SingleStore]:
        """The databases; an unreadable one of the person is left out."""
        return [layer.store for layer in self._layers()]

    def every_memory(self, owner: Owner) -> Iterator[tuple[Memory, list[Change]]]:
        """Yield all memories of an owner from all databases, each with its history, in the order of their changes.

        Ids are those of the databases.
        """
        every = every_memory([owner], self._clock.now())
        for store in self.stores:
            ids = store.ids(owner)
            for begin in range(0, len(ids), ERASED_AT_ONCE):
                for memory in store.get(ids[begin : begin + ERASED_AT_ONCE], every):
                    yield memory, store.history(memory.id, every)

    def prepare(self, store: MemoryStore) -> None:
        """Bring the terms of another store to the analyser of this engine."""
        Writer(store, self._analyser)

    def reindex(self, *, owners: Iterable[Owner] | None = None, progress: Progress | None = None) -> int:
        """Build the indexes anew from the store, and save them; return the number of their memories.

        Args:
            owners: the owners of the indexes; all owners unless given.
            progress: receives the number of memories of an owner that are done, and of all.
        """
        model = model_of(self._serving.embedder())
        return sum(layer.rebuild(owners, model, progress) for layer in self._layers())

    # --- Reading ------------------------------------------------------------------------------------------------

    def search(self, query: Query) -> Answer:
        """Return the memories that fit a query best, or the newest ones if it has no terms and no vector.

        The newest ones have the score 0: a higher minimum score leaves none. A query with patterns is answered by the
        store alone, and so is every other one while no index can be built. If lapsed memories are visible, those that
        hold at the moment of the query come before the others that were found.
        """
        self.serve(query.filters.view.tenant, query.filters.view.project)
        answer = self._search(query)
        return attrs.evolve(answer, hits=holding_first(answer.hits, query.filters)) if query.filters.lapsed else answer

    def _search(self, query: Query) -> Answer:
        terms = self._analyser.query(query.text)
        if query.patterns:
            return self._matching(query, terms)
        until, embedder = self._reranker.until(query.seconds), self._serving.embedder()
        language = self._analyser.language(query.text)
        vectors = QueryVectors() if query.by_words else self._vectors(embedder, query.text, language)
        trouble = vectors.trouble
        if not terms and vectors.vector is None:
            return self._newest(query, trouble)
        model = model_of(embedder)
        sought = _Sought(
            wanted=_wanted(
                query, terms + self._analyser.dates(query.text, query.filters.view.now), vectors.vector, model
            ),
            vectors=vectors,
            scale=scale_of(None if embedder is None else embedder.identity, language),
            until=until,
        )
        guess = None if self.is_joint else self._own_layer.guess(query.filters, model)
        if guess is not None:
            answer = self._answer(query, sought, guess.sources, guess.read)
            if guess.was_right:
                return answer
        try:
            each = self._each(lambda layer: layer.sources(query.filters, model, sought.wanted))
        except MemoryError:
            return self._without_index(query, terms, trouble)
        sources = [source for some in each for source in some]
        return self._answer(query, sought, sources, lambda ids: self.store.get(ids, query.filters))

    def terms(self, text: str) -> frozenset[int]:
        """Return the terms of a text: the same for a word and its other forms."""
        return frozenset(self._analyser.query(text))

    def holds(self, text: str, words: str) -> bool:
        """Return whether a text holds all words, in any form."""
        return {*self._analyser.terms(words)} <= {*self._analyser.terms(text)}

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`."""
        return self.store.get(ids, filters)

    def timeline(self, anchor: int, filters: Filters, *, before: int = 3, after: int = 3) -> list[Memory]:
        """Return a memory with its neighbours in time."""
        return self.store.timeline(anchor, filters, before=before, after=after)

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the history of a memory."""
        return self.store.history(id_, filters)

    def stats(self) -> Mapping[str, Any]:
        """Return figures about the tenant of this process."""
        return self.store.stats(self.tenant)

    def versions(self, owners: Sequence[Owner]) -> tuple[int, ...]:
        """Return numbers that change with each write to the memories of owners."""
        each = self._each(lambda layer: layer.store.versions(owners))
        return tuple(version for versions in each for version, _ in versions)

    def _answer(
        self,
        query: Query,
        sought: "_Sought",
        sources: Sequence[SearchSource],
        read: Callable[[list[int]], list[Memory]],
    ) -> Answer:
        """Return the memories that some indexes rank best."""
        vectors = sought.vectors
        found = gather(sources, sought.wanted.terms, vectors.vector, wide=sought.wanted.width)
        intent = self._analyser.intent(query.text, query.asker)

        def rank(candidates: Candidates) -> Ranked:
            now = query.filters.view.now.timestamp()
            return FORMULAS[query.formula](candidates, intent, now, self._weights, sought.scale)

        ranked, why = self._reranker.rank(found, rank, vectors, query.filters.view.tenant, until=sought.until)
        ranked = measured(ranked, fit(found, sought.scale))
        chosen = hits(best_of(found, ranked, query), read, ranked.shares, query)
        cut = BY_WORDS if found.cosine is None else sought.scale.cut
        return Answer(
            hits=chosen,
            keyword_only=vectors.trouble,
            total=found.size,
            not_reranked=why,
            floor=cut.floor,
            share=cut.share,
        )

    def _matching(self, query: Query, terms: Sequence[int]) -> Answer:
        """Return the memories that hold the patterns of a query, ranked by its words."""
        ids = self._holding(query)
        found: list[Memory] = []
        for some in (ids[begin : begin + exact.MOST] for begin in range(0, len(ids), exact.MOST)):
            found += [each for each in self.store.get(some, query.filters) if exact.holds(each, query.patterns)]
            if len(found) >= exact.MOST:
                break
        return self._ranked(query, found[: exact.MOST], terms)

    def _holding(self, query: Query) -> list[int]:
        """Return ids of memories that hold the patterns of a query; a search by terms is faster, where it finds any."""
        patterns, filters, limit = query.patterns, query.filters, exact.MOST_COMPARED
        terms = exact.sure_terms(patterns, self._analyser.terms)
        finder = None if self.is_joint else self._own_layer.finder
        if terms and finder is not None:
            found = finder.matching(patterns, filters, limit=limit, terms=terms)
            if found:
                return found
        return self.store.matching(patterns, filters, limit=limit)

    def _without_index(self, query: Query, terms: Sequence[int], trouble: str | None) -> Answer:
        """Return the memories that hold words of a query: all of them first, then any of them."""
        self._trace("index_not_built", why=OUT_OF_MEMORY)
        words = [Pattern(text=word) for word in self._analyser.words(query.text)]
        ids = self.store.matching(words, query.filters, limit=exact.MOST) if words else []
        if len(ids) < query.limit:
            each = [self.store.matching([word], query.filters, limit=exact.MOST) for word in words]
            ids = list(dict.fromkeys(itertools.chain(ids, *each)))[: exact.MOST]
        answer = self._ranked(query, self.store.get(ids, query.filters), terms)
        return attrs.evolve(answer, keyword_only=trouble, without_index=OUT_OF_MEMORY)

    def _ranked(self, query: Query, memories: Sequence[Memory], terms: Sequence[int]) -> Answer:
        choices, shares = exact.ranked(memories, query.patterns, terms, self._analyser.terms)
        good = [choice for choice in choices if choice.score >= query.minimum_score]
        by_id = {memory.id: memory for memory in memories}
        return Answer(hits=hits(good, lambda ids: [by_id[id_] for id_ in ids], shares, query), total=len(memories))

    def _newest(self, query: Query, trouble: str | None) -> Answer:
        if query.minimum_score > 0:
            return Answer(keyword_only=trouble)
        found = self.store.recent(query.filters, limit=query.limit + SPARE)
        choices = [Choice(id=memory.id, score=0.0) for memory in found]
        return Answer(hits=hits(choices, lambda _: found, {}, query), keyword_only=trouble, total=len(found))

    def _vectors(self, embedder: Embedder | None, text: str, language: TextLanguage) -> QueryVectors:
        """Return a query's vectors, or the reason why it has none; none if the model does not know its language."""
        if embedder is not None and not knows(embedder.identity, language):
            return QueryVectors()
        try:
            return self._reranker.vectors(embedder, text)
        except EmbeddingError as error:
            self._trace("embedding_failed", provider=error.provider, category=error.category, length=len(text))
            return QueryVectors(trouble=error.category)

    def _take_over(self, old: Embedder, new: Embedder) -> None:
        model, gone = model_of(new), model_of(old)
        self._each(lambda layer: layer.take_over(model, gone))
        self._trace("model_switched", provider=new.identity.provider, dimensions=new.identity.dimensions)

    @property
    def is_joint(self) -> bool:
        """Whether global memories lie in a database of their own."""
        return self._personal is not None

    @property
    def personal_trouble(self) -> StoreError | None:
        """The reason why the memories of the person are left out, or `None`."""
        return None if self._personal is None else self._personal.store.trouble

    def _erase(self, ids: Sequence[int], filters: Filters) -> None:
        for layer in self._layers() if ids else ():
            layer.erase(ids, filters.view.owners, model_of(self._serving.embedder()))

    # --- The databases ------------------------------------------------------------------------------------------

    def _drop_waiting(self, ids: Sequence[int], filters: Filters) -> None:
        """Erase the waiting turns that memories rest on: their capture would bring the memories back."""
        rests = {(memory.owner, memory.origin) for memory in self.store.get(ids, filters) if memory.origin}
        for owner in {owner for owner, _ in rests}:
            for each in self.store.queue.waiting(owner, ALL_PROJECTS, limit=MOST_WAITING):
                if (owner, each.turn) in rests:
                    self.store.queue.drop(owner, each.key)

    def _layers(self) -> list[Layer]:
        return self._each(lambda layer: layer)

    def _each(self, work: Callable[[Layer], T]) -> list[T]:
        """Return the result of `work` for each database; an unreadable database of the person is left out."""
        found = [work(self._own_layer)]
        if self._personal is not None:
            found += self._personal.store.attempt(lambda store: [work(self._layer_of_person(store))]) or []
        return found

    def _layer_of_person(self, store: SqliteStore) -> Layer:
        with self._lock:
            if self._personal_layer is None and self._personal is not None:
                self._personal_layer = self._personal.layer(store, self._trace, self._theirs)
        return cast("Layer", self._personal_layer)


def _wanted(query: Query, terms: Sequence[int], vector: np.ndarray | None, model: Model | None) -> Wanted:
    return Wanted(
        terms=tuple(terms),
        model=None if model is None else model.key,
        vector=b"" if vector is None else vector.astype("<f2").tobytes(),
        width=width(query.limit),
    )


def _nothing(_: str, **__: object) -> None:
    """Ignore the event."""
