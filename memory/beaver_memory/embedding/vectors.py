"""Cleans texts before embedding and normalises vectors after it. Pure."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaver_memory.embedding.errors import failure
from beaver_memory.embedding.protocol import Vector

LONGEST = 32_768
"""Characters of a text that count. No model here reads more, and cutting a text of a megabyte into words takes long."""

NOTHING = "."
"""The text in place of a blank one: several providers refuse an empty text, and it has no mean."""

_HALVES = re.compile("[\ud800-\udfff]")
_CHECK = "Check memory.local.embedding.model and dimensions."


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
