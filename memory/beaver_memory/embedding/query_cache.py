"""Caches the vectors of the last queries: users ask again, and several hooks of one turn ask the same."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from beaver_memory.embedding.protocol import Embedder, Identity, Vector

MOST = 1024
"""The default number of cached queries: about 1.5 MB of vectors of 384 dimensions."""


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
        self._most = most
        self._kept: OrderedDict[bytes, Vector] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> Identity:
        """The identity of the inner embedder."""
        return self._embedder.identity

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; see `Embedder`."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (kept := self._kept.get(digest)) is not None:
                self._kept.move_to_end(digest)
                return kept
        # Without the lock: other threads must not wait for a provider. Two equal queries at once are both sent to it.
        vector = self._embedder.embed_query(text).copy()
        vector.flags.writeable = False
        self._keep(digest, vector)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; they are not cached, since each passage is embedded once."""
        return self._embedder.embed_passages(texts)

    def close(self) -> None:
        """Close the embedder and empty the cache."""
        with self._lock:
            self._kept.clear()
        self._embedder.close()

    def _keep(self, digest: bytes, vector: Vector) -> None:
        with self._lock:
            self._kept[digest] = vector
            self._kept.move_to_end(digest)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
