"""Embeds the memories of an owner in batches, with the vectors of their tokens if these are wanted. Blocking."""

from collections.abc import Sequence

import numpy as np

from beaver_memory.embedding.protocol import Embedder, TokenEmbedder, with_tokens
from beaver_memory.model_switch import passage_tokens, passage_vectors
from beaver_memory.records import Owner
from beaver_memory.search import late_interaction
from beaver_memory.search.terms import passages
from beaver_memory.store.protocol import SingleStore
from beaver_memory.views import Project


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
