"""Caches the vectors of the last queries: users ask again, and several hooks of one turn ask the same."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from beaver_memory.embedding.protocol import Embedder, Identity, TokenEmbedder, TokenEmbedding, Vector, with_tokens

T = TypeVar("T")

MOST = 1024
"""The default number of cached queries: about 1.5 MB of vectors of 384 dimensions."""

TOKENS = 64
"""The most queries that are cached with their tokens: about 2 MB."""


class _Recent(Generic[T]):
    """Caches the values of the last texts, by their digests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def once(self, text: str, make: Callable[[], T]) -> T:
        """Return the value of a text; make it if it is not cached."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (kept := self._kept.get(digest)) is not None:
                self._kept.move_to_end(digest)
                return kept
        # Without the lock: other threads must not wait for a provider. Two equal queries at once are both sent to it.
        made = make()
        with self._lock:
            self._kept[digest] = made
            self._kept.move_to_end(digest)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._kept.clear()


class CachedQueries:
    """An `Embedder` that calls another one, and only once for a query in its cache.

    Its vectors are read-only, because several callers share one. Failures are not cached. The cache keeps a digest of
    each query and not the query itself.

    Args:
        embedder: the inner embedder; closed with this.
        most: how many queries are cached; the least recently used one goes first.
    """

    def __init__(self, embedder: Embedder, *, most: int = MOST) -> None:
        if most < 1:
            raise ValueError("the cache must hold at least one query; without a cache use the embedder itself")
        self._embedder = embedder
        self._vectors: _Recent[Vector] = _Recent(most)
        self._tokens: _Recent[TokenEmbedding] = _Recent(min(most, TOKENS))

    @property
    def identity(self) -> Identity:
        """The identity of the inner embedder."""
        return self._embedder.identity

    @property
    def has_tokens(self) -> bool:
        """Whether the inner embedder returns the vectors of tokens."""
        return with_tokens(self._embedder) is not None

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; see `Embedder`."""
        return self._vectors.once(text, lambda: _shared(self._embedder.embed_query(text)))

    def embed_query_tokens(self, text: str) -> TokenEmbedding:
        """Return a query and its tokens; see `TokenEmbedder`."""
        return self._tokens.once(text, lambda: self._with_tokens(text))

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; they are not cached, since each passage is embedded once."""
        return self._embedder.embed_passages(texts)

    def embed_passage_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return passages and their tokens; they are not cached either."""
        return cast("TokenEmbedder", self._embedder).embed_passage_tokens(texts)

    def close(self) -> None:
        """Close the embedder and empty the cache."""
        self._vectors.clear()
        self._tokens.clear()
        self._embedder.close()

    def _with_tokens(self, text: str) -> TokenEmbedding:
        found = cast("TokenEmbedder", self._embedder).embed_query_tokens(text)
        return TokenEmbedding(vector=_shared(found.vector), tokens=_shared(found.tokens))


def _shared(vector: Vector) -> Vector:
    """Return a copy that no caller can change."""
    copied = vector.copy()
    copied.flags.writeable = False
    return copied
