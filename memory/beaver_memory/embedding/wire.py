"""The requests to each embedding provider and its answers: one table of differences. Pure.

1. A body is JSON in UTF-8, with the model, the texts, and the constants of the provider.
2. An answer holds one list of numbers for each text, in order, each of the requested length. JSON's
   `NaN` is read, so that the error names it.
3. An error names the defect of an answer and never its contents.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
from attrs import field
from numpy.typing import NDArray

from beaver_memory.embedding.errors import Category
from beaver_memory.embedding.protocol import Purpose

_NONE: Mapping[Any, Any] = MappingProxyType({})
_NOTHING = re.compile(r"(?!)")

BYTES_PER_VALUE = 64
"""Bytes for one number in an answer: more than any number in full digits needs."""
ROOM = 256 * 1024
"""Bytes of an answer beside its numbers."""


@attrs.frozen(kw_only=True)
class Wire:
    """The wire format of one provider.

    Attributes:
        base_url: its usual address.
        path: the path below the address.
        key_variable: the usual environment variable of the credential.
        batch: the most texts of one request unless said otherwise.
        most: the most texts that the provider accepts.
        texts: the field that holds the texts.
        constants: fields that are always the same.
        purpose: the field for the purpose of a text, and its value for each purpose.
        resizing: the field for the number of dimensions, sent to `resizable` models only: others refuse it.
        resizable: the beginnings of the names of those models.
        found: the place of the vectors in the answer; `entries` of a list that each hold one, by their `index`.
        entries: see `found`.
    """

    base_url: str = ""
    path: str
    key_variable: str = ""
    batch: int
    most: int
    texts: str = "input"
    constants: Mapping[str, Any] = _NONE
    purpose: tuple[str, Mapping[Purpose, str]] = ("", _NONE)
    resizing: str = ""
    resizable: re.Pattern[str] = field(default=_NOTHING)
    found: tuple[str, ...]
    entries: bool = False


_OPENAI = Wire(
    path="/embeddings",
    batch=128,
    most=2048,
    constants=MappingProxyType({"encoding_format": "float"}),
    found=("data",),
    entries=True,
)

WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "openai-compatible": _OPENAI,
        "openai": attrs.evolve(
            _OPENAI,
            base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            resizing="dimensions",
            resizable=re.compile("text-embedding-3"),
        ),
        "voyage": Wire(
            base_url="https://api.voyageai.com/v1",
            path="/embeddings",
            key_variable="VOYAGE_API_KEY",
            batch=128,
            most=1000,
            purpose=("input_type", MappingProxyType({"query": "query", "passage": "document"})),
            resizing="output_dimension",
            resizable=re.compile(r"voyage-(?:3-large|3\.5|code-3|4)"),
            found=("data",),
            entries=True,
        ),
        "cohere": Wire(
            base_url="https://api.cohere.com/v2",
            path="/embed",
            key_variable="COHERE_API_KEY",
            batch=96,
            most=96,
            texts="texts",
            constants=MappingProxyType({"embedding_types": ["float"], "truncate": "END"}),
            purpose=("input_type", MappingProxyType({"query": "search_query", "passage": "search_document"})),
            resizing="output_dimension",
            resizable=re.compile("embed-v4"),
            found=("embeddings", "float"),
        ),
        "ollama": Wire(
            base_url="http://localhost:11434",
            path="/api/embed",
            batch=32,
            most=512,
            constants=MappingProxyType({"truncate": True}),
            found=("embeddings",),
        ),
    }
)


class AnswerError(Exception):
    """An answer cannot be used.

    Attributes:
        category: the kind of defect.
        problem: the defect in words that follow `The answer`.
    """

    def __init__(self, category: Category, problem: str) -> None:
        self.category: Category = category
        self.problem = problem
        super().__init__(problem)


def body(wire: Wire, model: str, texts: Sequence[str], purpose: Purpose, dimensions: int) -> bytes:
    """Return the body of a request. Rule 1."""
    whole: dict[str, Any] = {"model": model, wire.texts: [*texts], **wire.constants}
    name, values = wire.purpose
    if name:
        whole[name] = values[purpose]
    if wire.resizable.match(model):
        whole[wire.resizing] = dimensions
    return json.dumps(whole, ensure_ascii=False).encode("utf-8")


def parse(wire: Wire, answer: bytes, *, count: int, dimensions: int) -> NDArray[np.float64]:
    """Return the vectors of an answer, one in each row. Rule 2.

    Raises:
        AnswerError: the vectors are missing, or have another number or length.
    """
    found = _loaded(answer)
    for name in wire.found:
        found = found.get(name) if isinstance(found, dict) else None
    rows = _ordered(found) if wire.entries else found
    if not isinstance(rows, list) or len(rows) != count:
        raise AnswerError("malformed", f"does not hold {count} vectors where they should be")
    for row in rows:
        _check(row, dimensions)
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError:
        raise AnswerError("not_finite", "holds a number that is too large") from None


def most_bytes(count: int, dimensions: int) -> int:
    """Return the most bytes of an answer for a number of texts."""
    return ROOM + count * dimensions * BYTES_PER_VALUE


def _loaded(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        pass  # raised below: the library's error holds the answer
    raise AnswerError("malformed", "is not JSON")


def _ordered(entries: Any) -> list[Any]:
    """Return the vectors of entries in the order of their indices; without indices, in the order of the entries."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise AnswerError("malformed", "does not hold a list of vectors where it should be")
    indices = [entry.get("index", at) for at, entry in enumerate(entries)]
    if any(type(index) is not int for index in indices) or sorted(indices) != [*range(len(entries))]:
        raise AnswerError("malformed", "does not say which vector belongs to which text")
    placed = sorted(zip(indices, entries, strict=True), key=lambda pair: pair[0])
    return [entry.get("embedding") for _, entry in placed]


def _check(row: Any, dimensions: int) -> None:
    if not isinstance(row, list):
        raise AnswerError("malformed", "holds something else than a list of numbers")
    if len(row) != dimensions:
        raise AnswerError("wrong_dimension", f"holds a vector of {len(row)} dimensions, not of {dimensions}")
    for value in row:
        if value is None:
            raise AnswerError("not_finite", "holds a value that is not a number")
        # By type: `True` is an int too.
        if type(value) is not float and type(value) is not int:
            raise AnswerError("malformed", "holds something else than a list of numbers")
