"""Writes memories to a store together with their terms."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.records import Kept, Memory, NewMemory
from beaver_memory.search.terms import ANALYSER, Analyser, passages
from beaver_memory.store.protocol import Analysed, MemoryStore

FOUND_BY = frozenset({"title", "narrative", "facts", "keywords", "tags", "related_people", "related_files", "speaker"})
"""Fields from which terms are made."""

_TRIES = 5


class Writer:
    """Adds and changes memories. Thread-safe.

    First it brings the memories in the store to the version of the analyser: a search with another version would
    silently miss memories. That takes some seconds for each 100,000 memories, once for each new version.

    Args:
        store: the store of the memories.
        analyser: finds their terms.

    Raises:
        StoreError: the store has terms of a newer analyser, or cannot be used.
    """

    def __init__(self, store: MemoryStore, analyser: Analyser) -> None:
        self._store = store
        self._analyser = analyser
        store.settle(int(ANALYSER), self.analysed)

    def add(self, memories: Sequence[NewMemory], *, now: datetime) -> list[int]:
        """Store memories, all or none of them; return their ids."""
        return self._store.add([self.analysed(each, now) for each in memories], now=now)

    def remember(self, memories: Sequence[NewMemory], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that are not stored yet, all or none of them; return the outcome of each."""
        return self._store.remember([self.analysed(each, now) for each in memories], now=now, mention=mention)

    def supersede(
        self, memory: NewMemory, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime
    ) -> Kept:
        """Store a memory and end others, in one transaction; see `MemoryStore.supersede`."""
        return self._store.supersede(self.analysed(memory, now), ids, filters, at=at, now=now)

    def change(
        self, id_: int, filters: Filters, *, event: str, now: datetime, fields: Mapping[str, Any]
    ) -> Memory | None:
        """Change a visible memory and its terms."""
        if not FOUND_BY & fields.keys():
            return self._store.change(id_, filters, event=event, now=now, **fields)
        for _ in range(_TRIES):
            old = next(iter(self._store.get([id_], filters)), None)
            if old is None:
                return None
            meant = self.analysed(attrs.evolve(old, **{name: fields[name] for name in FOUND_BY & fields.keys()}))
            new = self._store.change(
                id_, filters, event=event, now=now, **fields, terms=meant.terms, length=meant.length
            )
            # Another writer may have changed another field meanwhile: then these are not its terms.
            if new is None or self.analysed(new).terms == meant.terms:
                return new
        return new

    def analysed(self, memory: NewMemory, now: datetime | None = None) -> Analysed:
        """Return a memory with its terms; `now` is the time at which it is made, if it does not say so itself."""
        text = memory.text
        labels = (*memory.keywords, *memory.tags, *memory.related_people, *memory.related_files)
        extra = "\n".join((*labels, memory.speaker)) if labels else memory.speaker
        made = now if memory.created_at is None else memory.created_at
        day = None if made is None else made.astimezone(UTC).date()
        terms, length = self._analyser.pack(passages(text), extra=extra, day=day)
        return Analysed(memory=memory, terms=terms, length=length)
