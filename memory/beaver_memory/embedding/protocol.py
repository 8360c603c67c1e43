"""What an embedder is, and what tells one from another."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import attrs
import numpy as np
from attrs import field
from attrs.validators import ge, le
from numpy.typing import NDArray

from beaver_memory.embedding.bounds import MOST_DIMENSIONS

Purpose = Literal["query", "passage"]
"""Whether a text is looked for, or looked through: several models embed the two differently."""

Vector = NDArray[np.float32]
"""One embedding, or several as the rows of an array of two dimensions."""

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 40
_DIGITS = 12


@attrs.frozen(kw_only=True)
class Identity:
    """What tells the embeddings of one embedder from those of another: they can be compared only if it is the same.

    Attributes:
        provider: who embeds.
        model: with which model.
        dimensions: the length of each embedding.
        query_prefix: what is put before a query.
        passage_prefix: what is put before a passage.
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
        """A short name for all of it, the same in every process; it can be part of a file name."""
        whole = json.dumps(attrs.asdict(self), sort_keys=True).encode("ascii")
        model = _ODD.sub("_", self.model)[:_LONGEST_NAME]
        return f"{self.provider}-{model}-{self.dimensions}-{hashlib.sha256(whole).hexdigest()[:_DIGITS]}"


class Embedder(Protocol):
    """Turns texts into vectors. May be used from several threads.

    Every vector has the declared dimension, finite values and the length 1; whatever would not is an error.
    A text without a letter is embedded too, and so is one with characters that are none; of a very long text only
    the beginning counts, so whoever has long passages cuts them into chunks.
    """

    @property
    def identity(self) -> Identity:
        """What its vectors can be compared with. Known without asking the provider."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of what is looked for.

        Raises:
            EmbeddingError: there is none.
        """

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Return the vectors of what is looked through, one row for each text, in order.

        Raises:
            EmbeddingError: there are none; nothing is returned for a part of the texts.
        """

    def close(self) -> None:
        """Let go of connections and models. Closing again does nothing."""


class Encoder(Protocol):
    """What a provider has to do: the rest is `CheckedEmbedder`'s. May be used from several threads."""

    def encode(self, texts: Sequence[str], purpose: Purpose) -> NDArray[Any]:
        """Return one row for each text; texts are never blank, and there is at least one.

        Raises:
            EmbeddingError: there are none.
        """

    def close(self) -> None:
        """Let go of everything. Closing again does nothing."""


class Trace(Protocol):
    """Is told what happens: names, counts and lengths, never a text or a credential."""

    def __call__(self, event: str, /, **facts: Any) -> None:
        """Take note of an event."""


def silent(event: str, /, **facts: Any) -> None:
    """Take note of nothing."""
