"""One database with its indexes and its tables of vectors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import attrs
import numpy as np

from beaver_memory.embedding.protocol import Embedder, TokenEmbedder, with_tokens
from beaver_memory.filters import Filters
from beaver_memory.model_switch import passage_tokens, passage_vectors
from beaver_memory.records import Memory, Owner
from beaver_memory.search import late_interaction
from beaver_memory.search.candidates import SearchSource
from beaver_memory.search.index_cache import SMALL, IndexShelf
from beaver_memory.search.nearest import Nearest
from beaver_memory.search.owner_index import Progress
from beaver_memory.search.sample import sample_of
from beaver_memory.search.snapshot import IndexState, Model
from beaver_memory.search.terms import passages
from beaver_memory.store.candidate_store import CandidateStore, Wanted
from beaver_memory.store.joint import PERSONAL_IDS, personal_view
from beaver_memory.store.personal import PersonalStore
from beaver_memory.store.protocol import SingleStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.views import EVERYTHING, Project, Reach, Reaches

BATCH = 32
"""Texts that are embedded at once."""

Trace = Callable[..., None]


@attrs.frozen(kw_only=True)
class Personal:
    """The memories of the person, beside those of a project.

    Attributes:
        store: the database of the person.
        indexes: the folder of the saved indexes, which make opening fast; `None` for none.
        nearest: makes the search of nearest vectors that replaces the indexes; `None` for the indexes.
        reach: the part of the database that is the process's own.
    """

    store: PersonalStore
    reach: Reach = EVERYTHING
    indexes: Path | None = None
    nearest: Callable[[SqliteStore], Nearest | None] | None = None

    def layer(self, store: SqliteStore, trace: Trace, reaches: Reaches) -> "Layer":
        """Return the layer of the open database."""
        nearest = None if self.nearest is None else self.nearest(store)
        return Layer(store, self.indexes, nearest, trace, reaches, personal=True)


class Layer:
    """Indexes the memories of one database. Thread-safe.

    Args:
        store: the database.
        indexes: the folder of the saved indexes, which make opening fast; `None` for none.
        nearest: finds the nearest vectors, in place of the indexes.
        trace: receives events: `trace(event, **facts)`.
        reaches: the parts of the database that are embedded.
        personal: whether it is the database of the person beside that of a project.
        small: memories of an owner up to which its index is built at once; see `IndexShelf`.
    """

    def __init__(
        self,
        store: SingleStore,
        indexes: Path | None,
        nearest: Nearest | None,
        trace: Trace,
        reaches: Reaches,
        *,
        personal: bool = False,
        small: int = SMALL,
    ) -> None:
        self.store = store
        self._reaches = reaches
        self._nearest = nearest
        # Not `isinstance`, which reads the identity of the store: that of a server may be out of reach now.
        self.finder = cast("CandidateStore", store) if hasattr(store, "candidates") else None
        self._shelf = IndexShelf(store, indexes, trace, None if self.finder is None else small)
        self._personal = personal

    @property
    def is_personal(self) -> bool:
        """Whether it is the database of the person beside that of a project."""
        return self._personal

    def guess(self, filters: Filters, model: Model | None) -> "Guess | None":
        """Return the indexes as they were at the last search, if the store can tell later whether they still are."""
        if self.finder is None or self._nearest is not None:
            return None
        states = self._shelf.known(filters.view.owners, model)
        sources = tuple(SearchSource(state=state, filters=filters) for state in states)
        return Guess(self.finder, sources, filters, model) if sources else None

    def sources(self, filters: Filters, model: Model | None, wanted: Wanted) -> list[SearchSource]:
        """Return the indexes to search, one for each owner; while that of a large owner is built, of its candidates."""
        seen = personal_view(filters) if self._personal else filters
        if seen is None:
            return []
        owners = seen.view.owners
        shift = PERSONAL_IDS if self._personal else 0
        finders = self._nearest if wanted.vector and model is not None else None
        return [
            SearchSource(
                state=self._sample(owner, seen, model, wanted) if state is None else state,
                filters=seen,
                finder=None if finders is None or model is None else finders.finder(owner, model),
                shift=shift,
            )
            for owner, state in zip(owners, self._shelf.current(owners, model), strict=True)
        ]

    def _sample(self, owner: Owner, filters: Filters, model: Model | None, wanted: Wanted) -> IndexState:
        if self.finder is None:
            return IndexState()
        found = sample_of(self.finder.candidates(owner, filters, wanted), model if wanted.vector else None)
        # The first answer does not wait for the processor.
        self._shelf.build(owner, model)
        return found

    def embed(self, embedder: Embedder, limit: int, owners: Iterable[Owner] | None, *, tokens: bool = False) -> int:
        """Embed memories that have no embedding yet, at most `limit`; return how many were embedded.

        With `tokens`, also those that lack the vectors of their tokens.

        Raises:
            EmbeddingError: the embedder fails.
        """
        done = 0
        for owner, project in self._parts(owners):
            batch = Batch(self.store, embedder, owner, project, tokens=tokens)
            while done < limit and (found := batch.embed(min(BATCH, limit - done))):
                done += found
        return done

    def pending(self, model: str, owners: Iterable[Owner] | None) -> int:
        """Return how many memories have no embedding by a model."""
        return sum(self.store.pending(owner, model, project) for owner, project in self._parts(owners))

    def owners(self, *more: Reach) -> list[Owner]:
        """Return the owners that have memories in the parts of the database that are embedded, and in others."""
        tenants = dict.fromkeys(reach.tenant for reach in (*more, *self._reaches))
        return list(dict.fromkeys(owner for tenant in tenants for owner in self.store.owners(tenant)))

    def _parts(self, owners: Iterable[Owner] | None) -> Iterator[tuple[Owner, Project]]:
        """Yield the owners, of all or of some, with the projects whose memories are embedded."""
        some = None if owners is None else {*owners}
        for reach in self._reaches:
            for owner in self.store.owners(reach.tenant):
                if some is None or owner in some:
                    yield owner, reach.project

    def catch_up(self, model: Model, owners: Iterable[Owner] | None) -> None:
        """Copy new embeddings into the tables of vectors."""
        if self._nearest is not None:
            for owner in self.owners() if owners is None else owners:
                self._nearest.catch_up(owner, model)

    def erase(self, ids: Iterable[int], owners: Iterable[Owner], model: Model | None) -> None:
        """Remove the memories that owners have forgotten here from all files of indexes."""
        if any((id_ > PERSONAL_IDS) is self._personal for id_ in ids):
            self._shelf.forget(owners, model)

    def drop_owner(self, owner: Owner) -> None:
        """Delete the indexes of an owner, and their files."""
        self._shelf.drop_owner(owner)

    def rebuild(self, owners: Iterable[Owner] | None, model: Model | None, progress: Progress | None) -> int:
        """Build the indexes anew from the database, and save them; return the number of their memories."""
        return self._shelf.rebuild(self.owners() if owners is None else owners, model, progress)

    def take_over(self, model: Model | None, gone: Model | None) -> None:
        """Prepare for the vectors of another model."""
        for owner in self._shelf.owners():
            self._shelf.current([owner], model)
        if gone is not None:
            self._shelf.drop(gone)

    def close(self) -> None:
        """Save the indexes. Closing again does nothing."""
        self._shelf.close()


class Guess:
    """Indexes that may be older than the store, until the store has been read.

    Args:
        store: the store.
        sources: the indexes, of the owners of the filters in their order.
        filters: the conditions for visible memories.
        model: the model of the vectors.
    """

    def __init__(
        self, store: CandidateStore, sources: Sequence[SearchSource], filters: Filters, model: Model | None
    ) -> None:
        self._store = store
        self.sources = sources
        self._filters = filters
        self._model = model
        self.was_right = False

    def read(self, ids: Sequence[int]) -> list[Memory]:
        """Return the visible memories among `ids`, and learn whether the indexes are those of the store."""
        if self.was_right:
            return self._store.get(ids, self._filters)
        found, versions = self._store.recalled(ids, self._filters, None if self._model is None else self._model.key)
        self.was_right = all(
            last == source.state.version and vector <= source.state.vector_version
            for source, (last, vector) in zip(self.sources, versions, strict=True)
        )
        return found


class Batch:
    """Embeds memories of one owner that have no embedding yet.

    Args:
        store: the database.
        embedder: makes the vectors.
        owner: the owner.
        project: the project whose memories are embedded, with the global ones.
        tokens: whether the vectors of tokens are stored as well; ignored if the embedder returns none.
    """

    def __init__(self, store: SingleStore, embedder: Embedder, owner: Owner, project: Project, *, tokens: bool) -> None:
        self._store, self._embedder, self._owner, self._project = store, embedder, owner, project
        self._key = embedder.identity.key
        self._of_tokens = with_tokens(embedder) if tokens else None

    def embed(self, limit: int) -> int:
        """Embed at most `limit` memories; return how many were embedded.

        Raises:
            EmbeddingError: the embedder fails.
        """
        found = self._store.unembedded(self._owner, self._key, self._project, limit=limit)
        if self._of_tokens is None:
            return self._put(self._key, found, self._vectors([text for _, text in found]) if found else [])
        if found:
            both = [_both(self._of_tokens, text) for _, text in found]
            self._put(self._key + late_interaction.MODEL, found, [tokens for _, tokens in both])
            return self._put(self._key, found, [vectors for vectors, _ in both])
        found = self._store.unembedded(self._owner, self._key + late_interaction.MODEL, self._project, limit=limit)
        tokens = [late_interaction.packed(_tokens(self._of_tokens, passages(text))) for _, text in found]
        return self._put(self._key + late_interaction.MODEL, found, tokens)

    def _put(self, model: str, found: Sequence[tuple[int, str]], made: Sequence[bytes]) -> int:
        rows = [(id_, data) for (id_, _), data in zip(found, made, strict=True)]
        # Another process may have changed a text while it was embedded: its memory then waits for another vector.
        self._store.put_vectors(self._owner, model, rows, texts=dict(found))
        return len(rows)

    def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        cut = [passages(text) for text in texts]
        vectors = passage_vectors(self._embedder, [passage for each in cut for passage in each]).astype("<f2")
        ends = np.cumsum([len(each) for each in cut])
        return [each.tobytes() for each in np.split(vectors, ends[:-1])]


def _both(embedder: TokenEmbedder, text: str) -> tuple[bytes, bytes]:
    """Return the vectors of a memory's passages, and those of the tokens of the first passages, from one run each."""
    cut = passages(text)
    found = passage_tokens(embedder, cut[: late_interaction.PASSAGES])
    vectors = np.stack([each.vector for each in found])
    if rest := cut[late_interaction.PASSAGES :]:
        vectors = np.concatenate([vectors, passage_vectors(embedder, rest)])
    return vectors.astype("<f2").tobytes(), late_interaction.packed([each.tokens for each in found])


def _tokens(embedder: TokenEmbedder, cut: Sequence[str]) -> list[np.ndarray]:
    return [each.tokens for each in passage_tokens(embedder, [*cut[: late_interaction.PASSAGES]])]
