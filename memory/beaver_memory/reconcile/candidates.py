"""Finds the memories that a new one may repeat, extend or supersede."""

from collections.abc import Iterable
from datetime import datetime

from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.query import Query
from beaver_memory.records import Memory, NewMemory
from beaver_memory.views import View

LIMIT = 8
"""The most memories that one search gives."""

THRESHOLD = 0.05
"""The lowest score of a candidate."""

MOST = 16
"""The most candidates."""

LONGEST = 2_000
"""Characters of a memory that are searched for."""


def own_filters(new: NewMemory, now: datetime) -> Filters:
    """Return the filters for the memories at the place of a new one, for example of its owner and store."""
    return Filters(
        view=View(
            owners=(new.owner,),
            stores=(new.store,),
            project=new.project or None,
            session=new.session,
            agent=new.agent,
            now=now,
        ),
        scopes=(new.scope,),
    )


def similar(
    engine: MemoryEngine, new: NewMemory, texts: Iterable[str], now: datetime, *, by_words: bool = False
) -> list[Memory]:
    """Return the memories at the same place that are most similar to a new one, the most similar first.

    Args:
        engine: the engine that holds them.
        new: the new memory.
        texts: other words for what it says, each searched for by itself.
        now: the moment at which they must hold.
        by_words: whether words alone count.
    """
    filters = own_filters(new, now)
    found: dict[int, Memory] = {}
    for text in (new.text, *texts):
        query = Query(text=text[:LONGEST], filters=filters, limit=LIMIT, minimum_score=THRESHOLD, by_words=by_words)
        for hit in engine.search(query).hits:
            if same_place(new, hit.memory):
                found.setdefault(hit.memory.id, hit.memory)
    return list(found.values())[:MOST]


def same_place(one: NewMemory, other: NewMemory) -> bool:
    """Return whether two memories belong to the same owner, store, agent and scope."""
    names = ("owner", "store", "agent", "scope")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if one.scope != "global" and one.project != other.project:
        return False
    return one.scope != "session" or one.session == other.session
