"""What is asked of the engine, and what it answers."""

from collections.abc import Mapping

import attrs
from attrs import field
from attrs.validators import and_, ge, instance_of, le, optional

from beaver_memory.filters import Filters
from beaver_memory.records import Memory

MOST = 1_000


@attrs.frozen(kw_only=True)
class Query:
    """A search.

    Attributes:
        text: what is looked for; where it says nothing the newest come first, with the score 0.
        filters: what may be seen.
        limit: how many memories to return at most.
        max_tokens: what they may cost together; the first one is always among them.
        minimum_score: what a memory has to score, 0 to 1; see `Hit.score`.
        formula: by which they are ranked: `context`, `weighted`, `seed-002`, `seed-003` or `rrf`.
        explain: say what each signal has added.
    """

    text: str = field(default="", validator=instance_of(str))
    filters: Filters = field(validator=instance_of(Filters))
    limit: int = field(default=10, validator=and_(instance_of(int), ge(1), le(MOST)))
    max_tokens: int | None = field(default=None, validator=optional(and_(instance_of(int), ge(1))))
    minimum_score: float = field(default=0.0, validator=[instance_of((int, float)), ge(0), le(1)])
    formula: str = "context"
    explain: bool = False


@attrs.frozen(kw_only=True)
class Hit:
    """A memory that was found.

    Attributes:
        memory: the whole of it.
        score: 0 to 1. The best one's says how well it fits the query by itself: 1 is a memory that has all of its
            words, and with vectors one that is as near as an answer. The others are in proportion.
        passage: the number of its best passage.
        shares: what each signal has added, if that was asked for.
    """

    memory: Memory
    score: float
    passage: int = 0
    shares: Mapping[str, float] = field(factory=dict)


@attrs.frozen(kw_only=True)
class Answer:
    """What a search came to.

    Attributes:
        hits: the best first.
        keyword_only: why vectors were not looked at although there is an embedder, or `None`.
        total: how many candidates there were.
    """

    hits: tuple[Hit, ...] = ()
    keyword_only: str | None = None
    total: int = 0
