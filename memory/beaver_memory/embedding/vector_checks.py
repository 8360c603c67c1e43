"""Checks every vector of every encoder before it leaves the package."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from beaver_memory.embedding.errors import EmbeddingError, failure
from beaver_memory.embedding.protocol import (
    Encoder,
    Identity,
    Purpose,
    TokenEmbedding,
    TokenEncoder,
    Trace,
    Vector,
    silent,
)
from beaver_memory.embedding.vectors import cleaned, normalised

T = TypeVar("T")


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
        row: Vector = self._embed([text], "query", self._checked)[0]
        return row

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages; see `Embedder`."""
        if isinstance(texts, str):
            raise TypeError("it must be a list of texts, not one text")
        if not texts:
            return np.zeros((0, self.identity.dimensions), dtype=np.float32)
        return self._embed(texts, "passage", self._checked)

    @property
    def has_tokens(self) -> bool:
        """Whether the encoder returns the vectors of tokens."""
        return hasattr(self._encoder, "encode_tokens")

    def embed_query_tokens(self, text: str) -> TokenEmbedding:
        """Return a query and its tokens; see `TokenEmbedder`."""
        return self._embed([text], "query", self._checked_tokens)[0]

    def embed_passage_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return passages and their tokens; see `TokenEmbedder`."""
        return self._embed(texts, "passage", self._checked_tokens) if texts else []

    def close(self) -> None:
        """Close the encoder."""
        self._closed.set()
        self._encoder.close()

    def _embed(self, texts: Sequence[str], purpose: Purpose, encode: Callable[[list[str], Purpose], T]) -> T:
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
            self._ensure_open()
            rows = encode(ready, purpose)
        except EmbeddingError as error:
            self._trace("embedding_failed", **facts, category=error.category, status=error.status)
            raise
        spent = round((self._seconds() - began) * 1000, 3)
        self._trace("embedded", **facts, dimensions=self.identity.dimensions, milliseconds=spent)
        return rows

    def _ensure_open(self) -> None:
        provider = self.identity.provider
        if self._closed.is_set():
            raise failure(provider, "unavailable", f"The embedder {provider} is closed", "Make a new one.")

    def _checked(self, ready: list[str], purpose: Purpose) -> Vector:
        return self._normalised(self._encoder.encode(ready, purpose), len(ready))

    def _checked_tokens(self, ready: list[str], purpose: Purpose) -> list[TokenEmbedding]:
        if not self.has_tokens:
            raise NotImplementedError(f"the embedder {self.identity.provider} has no vectors of tokens")
        found = cast("TokenEncoder", self._encoder).encode_tokens(ready, purpose, skip=len(self._prefixes[purpose]))
        vectors = self._normalised(np.stack([vector for vector, _ in found]), len(ready))
        return [
            TokenEmbedding(vector=vector, tokens=self._normalised(tokens, len(tokens)))
            for vector, (_, tokens) in zip(vectors, found, strict=True)
        ]

    def _normalised(self, rows: NDArray[Any], count: int) -> Vector:
        return normalised(rows, provider=self.identity.provider, count=count, dimensions=self.identity.dimensions)
