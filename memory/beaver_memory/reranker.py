"""Ranks the first memories of a search again, by the tokens of their texts, where the embedder returns tokens."""

from collections.abc import Callable
from typing import Literal

import attrs
import numpy as np

from beaver_hostspecs import Clock
from beaver_memory.embedding.protocol import Embedder, with_tokens
from beaver_memory.model_switch import query_tokens, query_vector
from beaver_memory.search import late_interaction
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.store.protocol import MemoryStore

RerankerName = Literal["none", "tokens"]

NO_TOKENS = "no_token_vectors"
"""The reason if there is no embedder, or it returns no tokens."""

DEADLINE = "deadline"
"""The reason if half of the time of a search has passed before its memories are ranked."""

IN_TIME = 0.5
"""The part of the time of a search after which its memories are not ranked again."""


@attrs.frozen(kw_only=True, eq=False)
class QueryVectors:
    """The vectors of a query.

    Attributes:
        vector: the query as a vector; `None` without one.
        tokens: its tokens, as `late_interaction` compares them; `None` without them.
        model: the name of the vectors of tokens in the store.
        trouble: the category of the embedder's failure.
        not_reranked: why there are no tokens, although they are wanted.
    """

    vector: np.ndarray | None = None
    tokens: np.ndarray | None = None
    model: str = ""
    trouble: str | None = None
    not_reranked: str | None = None


class TokenReranker:
    """Ranks the first memories of a search again, if it is switched on.

    Args:
        store: the store of the vectors.
        clock: the source of time.
        enabled: the switch.
        weight: how far tokens take the place of the cosine, 0 to 1.
    """

    def __init__(self, store: MemoryStore, clock: Clock, *, enabled: bool, weight: float) -> None:
        self._store, self._clock, self.enabled, self._weight = store, clock, enabled, weight

    def vectors(self, embedder: Embedder | None, text: str) -> QueryVectors:
        """Return the vectors of a query, with those of its tokens if it is switched on.

        Raises:
            EmbeddingError: the embedder fails.
        """
        of_tokens = with_tokens(embedder) if self.enabled else None
        why = NO_TOKENS if self.enabled and of_tokens is None else None
        if embedder is None or not text.strip():
            return QueryVectors(not_reranked=why)
        if of_tokens is None:
            return QueryVectors(vector=query_vector(embedder, text), not_reranked=why)
        found = query_tokens(of_tokens, text)
        return QueryVectors(
            vector=found.vector,
            tokens=late_interaction.query_tokens(found.tokens),
            model=embedder.identity.key + late_interaction.MODEL,
        )

    def until(self, seconds: float | None) -> float:
        """Return the moment from which on a search that begins now is not ranked again."""
        return float("inf") if seconds is None else self._clock.monotonic() + IN_TIME * seconds

    def rank(
        self, found: Candidates, rank: Callable[[Candidates], Ranked], query: QueryVectors, tenant: str, *, until: float
    ) -> tuple[Ranked, str | None]:
        """Return the candidates as ranked at last, and why they were not ranked again, if that was wanted."""
        ranked = rank(found)
        if query.tokens is None or not found.size:
            return ranked, query.not_reranked
        if self._clock.monotonic() >= until:
            return ranked, DEADLINE
        ids = late_interaction.first_memories(found, ranked)
        stored = self._store.vectors_of(ids, query.model, tenant=tenant)
        closer = late_interaction.closer(found, query.tokens, stored, self._weight)
        return ranked if closer is None else late_interaction.told(ranked, rank(closer)), None
