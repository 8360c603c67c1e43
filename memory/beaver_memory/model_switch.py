"""Switches embedders: the old one answers until the new one has embedded as many memories."""

import functools
import threading
from collections.abc import Callable

import numpy as np

from beaver_hostspecs import Clock
from beaver_memory.embedding.breaker import Breaker
from beaver_memory.embedding.errors import Category, EmbeddingError, failure
from beaver_memory.embedding.protocol import Embedder, Identity, TokenEmbedder, TokenEmbedding, Vector
from beaver_memory.search.snapshot import Model

LOOK_SECONDS = 30.0
"""Seconds between checks, by searches, whether another process has embedded enough."""


def model_of(embedder: Embedder | None) -> Model | None:
    """Return the model of an embedder's vectors."""
    if embedder is None:
        return None
    return _model(embedder.identity)


@functools.lru_cache(maxsize=8)
def _model(identity: Identity) -> Model:
    # The key is a digest, and each search needs it.
    return Model(key=identity.key, dimensions=identity.dimensions)


class ModelSwitch:
    """Chooses between two embedders. Thread-safe.

    Args:
        pending: returns how many memories have no vector by a model.
        embedder: the new one; `None` for none at all.
        previous: the one whose vectors are in the store; `None` if no model is replaced.
        clock: the source of time.
        take_over: called before the new one answers, to prepare for it.
    """

    def __init__(
        self,
        pending: Callable[[str], int],
        embedder: Breaker | None,
        previous: Breaker | None,
        clock: Clock,
        take_over: Callable[[Embedder, Embedder], None],
    ) -> None:
        self._pending = pending
        self._embedder = embedder
        self._previous = previous if embedder is not None else None
        self._clock = clock
        self._take_over = take_over
        self._all = [each for each in (self._previous, embedder) if each is not None]
        self._looked = float("-inf")
        self._lock = threading.Lock()

    def embedder(self) -> Embedder | None:
        """Return the embedder for queries."""
        if self._previous is not None and self._clock.monotonic() - self._looked >= LOOK_SECONDS:
            self.look()
        return self.asked

    @property
    def asked(self) -> Breaker | None:
        """The embedder for queries, without a check."""
        return self._previous or self._embedder

    def look(self) -> None:
        """Let the new embedder take over, if it has embedded as many memories as the old one."""
        with self._lock:
            old, new = self._previous, self._embedder
            if old is None or new is None:
                return
            self._looked = self._clock.monotonic()
            if self._pending(new.identity.key) <= self._pending(old.identity.key):
                self._take_over(old, new)
                self._previous = None

    def close(self) -> None:
        """Close both embedders."""
        for each in self._all:
            each.close()


def query_vector(embedder: Embedder, text: str) -> Vector:
    """Return the vector of a query, checked once more: an embedder may be third-party code.

    Raises:
        EmbeddingError: the embedder fails, or its vector cannot be used.
    """
    vector: Vector = checked(embedder, np.asarray(embedder.embed_query(text)).reshape(1, -1), 1)[0]
    return vector


def passage_vectors(embedder: Embedder, texts: list[str]) -> Vector:
    """Return the vectors of passages, checked once more.

    Raises:
        EmbeddingError: the embedder fails, or its vectors cannot be used.
    """
    return checked(embedder, np.asarray(embedder.embed_passages(texts)), len(texts))


def query_tokens(embedder: TokenEmbedder, text: str) -> TokenEmbedding:
    """Return a query as a vector and as those of its tokens, checked once more.

    Raises:
        EmbeddingError: the embedder fails, or its vectors cannot be used.
    """
    return _checked_tokens(embedder, embedder.embed_query_tokens(text))


def passage_tokens(embedder: TokenEmbedder, texts: list[str]) -> list[TokenEmbedding]:
    """Return passages as vectors and as those of their tokens, checked once more.

    Raises:
        EmbeddingError: the embedder fails, or its vectors cannot be used.
    """
    found = [_checked_tokens(embedder, each) for each in embedder.embed_passage_tokens(texts)]
    if len(found) != len(texts):
        raise _unusable(embedder.identity.provider, "wrong_dimension")
    return found


def _checked_tokens(embedder: Embedder, found: TokenEmbedding) -> TokenEmbedding:
    vector = checked(embedder, np.asarray(found.vector).reshape(1, -1), 1)[0]
    tokens = np.asarray(found.tokens)
    return TokenEmbedding(vector=vector, tokens=checked(embedder, tokens, max(1, len(tokens))))


def checked(embedder: Embedder, rows: Vector, count: int) -> Vector:
    """Return rows that have the declared dimension and finite values.

    Raises:
        EmbeddingError: a row has another dimension or values that are not finite.
    """
    identity = embedder.identity
    if rows.shape != (count, identity.dimensions):
        raise _unusable(identity.provider, "wrong_dimension")
    if not np.isfinite(rows).all():
        raise _unusable(identity.provider, "not_finite")
    return rows.astype("f4", copy=False)


def _unusable(provider: str, category: Category) -> EmbeddingError:
    remedy = "Check memory.local.embedding.model and dimensions."
    return failure(provider, category, f"The embedder {provider} returned something that is not an embedding", remedy)
