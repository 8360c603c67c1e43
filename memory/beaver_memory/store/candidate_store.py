"""The protocol of a store on a server: it finds candidates by itself, and answers a search in one exchange."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import attrs
from attrs import field

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import Memory, Owner
from beaver_memory.store.protocol import IndexRow, SingleStore, VectorRow


@attrs.frozen(kw_only=True)
class Wanted:
    """What a search looks for.

    Attributes:
        terms: the terms of the query, as hashes.
        model: the model of the vectors; `None` without vectors.
        vector: the values of the query's vector, float16, little-endian; empty without one.
        width: the candidates that each channel contributes.
    """

    terms: tuple[int, ...] = ()
    model: str | None = None
    vector: bytes = field(default=b"", repr=False)
    width: int


@attrs.frozen(kw_only=True)
class CandidateRows:
    """The memories of one owner that may answer a search, and figures of all that the search may see.

    Attributes:
        rows: the memories, each once.
        vectors: their embeddings.
        neighbours: pairs of them that follow one another in a session.
        memories: how many memories of the owner are visible.
        length: how many terms these have together.
        frequencies: how many of these have each term of the query; all figures are of one moment.
    """

    rows: tuple[IndexRow, ...] = ()
    vectors: tuple[VectorRow, ...] = ()
    neighbours: frozenset[tuple[int, int]] = frozenset()
    memories: int = 0
    length: int = 0
    frequencies: Mapping[int, int] = field(factory=dict)


class CandidateStore(SingleStore, Protocol):
    """A store whose database finds candidates faster than an index of a large owner could be built.

    Each exchange with the database costs time, so one method answers the two questions of a search with an index.
    """

    def recalled(
        self, ids: Sequence[int], filters: Filters, model: str | None
    ) -> tuple[list[Memory], list[tuple[int, int]]]:
        """Return what `get` and `versions` return for the owners of the filters; the versions are not newer."""

    def matching(
        self, patterns: Sequence[Pattern], filters: Filters, *, limit: int, terms: Collection[int] = ()
    ) -> list[int]:
        """Return what `matching` of every store returns.

        With `terms`, only memories that have all of these need to be among them: that is found faster.
        """

    def candidates(self, owner: Owner, filters: Filters, wanted: Wanted) -> CandidateRows:
        """Return the visible memories of an owner that are best by words, nearest by vectors, or beside such ones.

        The best are found by the rarer terms first and roughly ranked, so more of them than wanted are returned; the
        caller ranks them. The nearest are exact.
        """
