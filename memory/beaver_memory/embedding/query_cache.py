"""Remembers the vectors of the last queries: people ask again, and several hooks of one turn ask the same."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from beaver_memory.embedding.protocol import Embedder, Identity, Vector

MOST = 1024
"""Queries that are remembered unless said otherwise: about 1.5 MB of vectors of 384 dimensions."""


class CachedQueries:
    """An `Embedder` that asks another one, and once only for the queries it remembers.

    A vector from it cannot be written to, because others have the same one. What fails is not remembered. It keeps a
    digest of each query and not the query itself.

    Args:
        embedder: who is asked; closed with this.
        most: how many queries are remembered; the one that was not asked for the longest goes first.
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
        """The identity of the embedder that is asked."""
        return self._embedder.identity

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; see `Embedder`."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if (kept := self._kept.get(digest)) is not None:
                self._kept.move_to_end(digest)
                return kept
        # Without the lock: others must not wait for a provider. Two who ask the same at once both ask it.
        vector = self._embedder.embed_query(text).copy()
        vector.flags.writeable = False
        self._keep(digest, vector)
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; they are not remembered, since each is embedded once."""
        return self._embedder.embed_passages(texts)

    def close(self) -> None:
        """Close the embedder and forget everything."""
        with self._lock:
            self._kept.clear()
        self._embedder.close()

    def _keep(self, digest: bytes, vector: Vector) -> None:
        with self._lock:
            self._kept[digest] = vector
            self._kept.move_to_end(digest)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
