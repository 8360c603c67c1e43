"""The protocols of embedders and encoders, and the identity of embeddings."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol, cast

import attrs
import numpy as np
from attrs import field
from attrs.validators import ge, le
from numpy.typing import NDArray

from beaver_memory.embedding.settings import MOST_DIMENSIONS

Purpose = Literal["query", "passage"]
"""The purpose of a text, as a query or as a passage: several models embed the two differently."""

Vector = NDArray[np.float32]
"""One embedding, or several as the rows of an array of two dimensions."""

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 40
_DIGITS = 12


@attrs.frozen(kw_only=True)
class Identity:
    """The identity of an embedder: two embeddings can be compared only if theirs is the same.

    Attributes:
        provider: the provider.
        model: its model.
        dimensions: the length of each embedding.
        query_prefix: the prefix of a query.
        passage_prefix: the prefix of a passage.
        normalised: whether each embedding has the length 1.
    """

    provider: str
    model: str
    dimensions: int = field(validator=[ge(1), le(MOST_DIMENSIONS)])
    query_prefix: str = ""
    passage_prefix: str = ""
    normalised: bool = True

    @property
    def key(self) -> str:
        """A short name of the whole identity, the same in every process; it can be part of a file name."""
        whole = json.dumps(attrs.asdict(self), sort_keys=True).encode("ascii")
        model = _ODD.sub("_", self.model)[:_LONGEST_NAME]
        return f"{self.provider}-{model}-{self.dimensions}-{hashlib.sha256(whole).hexdigest()[:_DIGITS]}"


class Embedder(Protocol):
    """Turns texts into vectors. May be used from several threads.

    Every vector has the declared dimension, finite values and the length 1; any other vector is an error. A text
    without a letter is embedded too, and so is one with invalid characters; only the beginning of a very long text
    counts, so callers cut long passages into chunks.
    """

    @property
    def identity(self) -> Identity:
        """The identity of its vectors, known without a request to the provider."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query.

        Raises:
            EmbeddingError: the query cannot be embedded.
        """

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of passages, one row for each text, in order.

        Raises:
            EmbeddingError: a text cannot be embedded; no part of the texts is returned.
        """

    def close(self) -> None:
        """Release connections and models. Closing again does nothing."""


@attrs.frozen(kw_only=True, eq=False)
class TokenEmbedding:
    """A text as a vector, and as the vectors of its tokens.

    Attributes:
        vector: the vector that `Embedder` returns for the text.
        tokens: one row of length 1 for each token; at least one.
    """

    vector: Vector
    tokens: Vector


class TokenEmbedder(Embedder, Protocol):
    """An embedder that may return the vectors of tokens as well, from one run of its model.

    Attributes:
        has_tokens: whether it does; if not, the other methods raise `NotImplementedError`.
    """

    @property
    def has_tokens(self) -> bool:
        """Whether it returns the vectors of tokens."""

    def embed_query_tokens(self, text: str) -> TokenEmbedding:
        """Return a query and its tokens; see `Embedder.embed_query`."""

    def embed_passage_tokens(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return passages and their tokens, in order; see `Embedder.embed_passages`."""


def with_tokens(embedder: Embedder | None) -> TokenEmbedder | None:
    """Return the embedder if it returns the vectors of tokens, else `None`."""
    return cast("TokenEmbedder", embedder) if getattr(embedder, "has_tokens", False) else None


class Encoder(Protocol):
    """The part of an embedder that each provider implements; `CheckedEmbedder` does the rest. Thread-safe."""

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return one row for each text; texts are never blank, and there is at least one.

        Raises:
            EmbeddingError: the texts cannot be embedded.
        """

    def close(self) -> None:
        """Release everything. Closing again does nothing."""


class TokenEncoder(Encoder, Protocol):
    """An encoder whose model returns a vector for each token."""

    def encode_tokens(
        self, texts: Sequence[str], purpose: Purpose, *, skip: int
    ) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return for each text what `encode` returns, and one row for each of its tokens.

        Args:
            texts: the texts; see `encode`.
            purpose: their purpose.
            skip: characters at the beginning of each text, the prefix, whose tokens are left out.

        Raises:
            EmbeddingError: the texts cannot be embedded.
        """


class Trace(Protocol):
    """Receives events: names, counts and lengths, never a text or a credential."""

    def __call__(self, event: str, /, **facts: Any) -> None:
        """Record an event."""


def silent(event: str, /, **facts: Any) -> None:
    """Ignore the event."""
