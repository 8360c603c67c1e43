"""The queries to the engine, and its answers."""

from collections.abc import Mapping

import attrs
from attrs import field
from attrs.validators import and_, ge, instance_of, le, optional

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import Memory

MOST = 1_000


@attrs.frozen(kw_only=True)
class Query:
    """A search.

    Attributes:
        text: the text to search for; with neither terms nor a vector the newest come first, with the score 0.
        patterns: phrases and prefixes that each hit must hold; the words of the text then rank the hits.
        filters: the conditions for visible memories.
        limit: the most memories to return.
        max_tokens: the most tokens of all hits together; the first hit is always returned.
        minimum_score: the lowest score of a hit, 0 to 1; see `Hit.score`.
        formula: the formula for ranking: `context`, `seed-002` or `seed-003`.
        asker: the speaker whom the first person of the text means.
        explain: whether hits show the share of each signal.
        seconds: the time that the caller has; memories that are found late in it are not ranked again by tokens.
        by_words: whether words alone count, so that no embedder is asked.
    """

    text: str = field(default="", validator=instance_of(str))
    patterns: tuple[Pattern, ...] = ()
    filters: Filters = field(validator=instance_of(Filters))
    limit: int = field(default=10, validator=and_(instance_of(int), ge(1), le(MOST)))
    max_tokens: int | None = field(default=None, validator=optional(and_(instance_of(int), ge(1))))
    minimum_score: float = field(default=0.0, validator=[instance_of((int, float)), ge(0), le(1)])
    formula: str = "context"
    asker: str = field(default="user", validator=instance_of(str))
    explain: bool = False
    seconds: float | None = field(default=None, validator=optional(and_(instance_of((int, float)), ge(0))))
    by_words: bool = False


@attrs.frozen(kw_only=True)
class Hit:
    """A memory that was found.

    Attributes:
        memory: the whole memory.
        score: 0 to 1. The best score says how well that memory fits the query by itself: 1 is a memory that has all
            words of the query, and with vectors one that is as near as an answer. The others are in proportion.
        passage: the number of its best passage.
        shares: the share of each signal, if the query asks for it.
    """

    memory: Memory
    score: float
    passage: int = 0
    shares: Mapping[str, float] = field(factory=dict)


@attrs.frozen(kw_only=True)
class Answer:
    """The result of a search.

    Attributes:
        hits: the hits, best first.
        keyword_only: the reason why the search used no vectors although it has an embedder, or `None`.
        total: the number of candidates.
        without_index: the reason why no index could be built, so that the store answered by its words, or `None`.
        not_reranked: the reason why the memories were not ranked again by their tokens although that is switched on:
            `no_token_vectors` of this embedder, or `deadline`; or `None`.
        floor: the lowest score of the best hit of a query about something that the memories know.
        share: the share of the best score that another hit needs to be worth giving. Both depend on how the search was
            done.
    """

    hits: tuple[Hit, ...] = ()
    keyword_only: str | None = None
    total: int = 0
    without_index: str | None = None
    not_reranked: str | None = None
    floor: float = 0.0
    share: float = 0.65
