"""Checks every vector of every encoder before it leaves the package."""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.protocol import Encoder, Identity, Purpose, Trace, Vector, silent
from beaver_memory.embedding.vectors import cleaned, normalised


class CheckedEmbedder:
    """An `Embedder` around an encoder: cleans and prefixes texts, checks and normalises vectors.

    It traces `embedded` and `embedding_failed`, with counts and lengths only.

    Args:
        encoder: makes the vectors; closed with this.
        identity: the identity of the vectors.
        trace: receives each call.
        seconds: a clock for the trace.
    """

    def __init__(
        self,
        encoder: Encoder,
        identity: Identity,
        *,
        trace: Trace = silent,
        seconds: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.identity = identity
        self._encoder = encoder
        self._trace = trace
        self._seconds = seconds
        self._closed = threading.Event()
        self._prefixes: dict[Purpose, str] = {"query": identity.query_prefix, "passage": identity.passage_prefix}

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; see `Embedder`."""
        row: Vector = self._embed([text], "query")[0]
        return row

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; see `Embedder`."""
        if isinstance(texts, str):
            raise TypeError("it must be a list of texts, not one text")
        if not texts:
            return np.zeros((0, self.identity.dimensions), dtype=np.float32)
        return self._embed(texts, "passage")

    def close(self) -> None:
        """Close the encoder."""
        self._closed.set()
        self._encoder.close()

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vector:
        ready = [self._prefixes[purpose] + cleaned(text) for text in texts]
        facts = {
            "provider": self.identity.provider,
            "model": self.identity.model,
            "purpose": purpose,
            "count": len(ready),
            "characters": sum(map(len, ready)),
        }
        began = self._seconds()
        try:
            rows = self._checked(ready, purpose)
        except EmbeddingError as error:
            self._trace("embedding_failed", **facts, category=error.category, status=error.status)
            raise
        spent = round((self._seconds() - began) * 1000, 3)
        self._trace("embedded", **facts, dimensions=self.identity.dimensions, milliseconds=spent)
        return rows

    def _checked(self, ready: Sequence[str], purpose: Purpose) -> Vector:
        provider = self.identity.provider
        if self._closed.is_set():
            raise failure(provider, "unavailable", f"The embedder {provider} is closed", "Make a new one.")
        rows = self._encoder.encode(ready, purpose)
        return normalised(rows, provider=provider, count=len(ready), dimensions=self.identity.dimensions)
