"""Cleans every text before it is embedded, and checks every vector before it leaves the package."""

import re
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

LONGEST = 32_768
"""Characters of a text that count. No model here reads more, and cutting a text of a megabyte into words takes long."""

NOTHING = "."
"""The text in place of a blank one: several providers refuse an empty text, and it has no mean."""

_HALVES = re.compile("[\ud800-\udfff]")
_CHECK = "Check memory.local.embedding.model and dimensions."

T = TypeVar("T")


def cleaned(text: str) -> str:
    """Return a text that every provider accepts: of bounded length, not blank, without lone surrogates."""
    text = text[:LONGEST]
    if not text.isascii():
        text = _HALVES.sub("\ufffd", text)
    return text if text.strip() else NOTHING


def normalised(rows: NDArray[Any], *, provider: str, count: int, dimensions: int) -> Vector:
    """Return the rows with the length 1.

    Args:
        rows: the answer of a provider.
        provider: its name.
        count: how many rows there must be.
        dimensions: the length that each row must have.

    Raises:
        EmbeddingUnusable: the number or length of the rows is wrong, or a row is zero or not finite.
    """
    if rows.shape != (count, dimensions):
        raise failure(
            provider,
            "wrong_dimension",
            f"The embedding provider {provider} returned vectors of another length than {dimensions}, or too many or"
            " too few",
            _CHECK,
        )
    values = rows.astype(np.float64)
    # The largest value first, so that the squares neither overflow nor vanish.
    largest = np.abs(values).max(axis=1, keepdims=True)
    if not np.isfinite(largest).all() or not largest.all():
        raise failure(
            provider,
            "not_finite",
            f"The embedding provider {provider} returned a vector that is zero or holds a value that is not a number",
            "Try again; if it happens again, choose another memory.local.embedding.model.",
        )
    values /= largest
    values /= np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    return values.astype(np.float32)


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
