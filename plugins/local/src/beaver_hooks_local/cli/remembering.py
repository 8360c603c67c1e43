"""Stores memories that are not there yet. Blocking."""

from collections.abc import Sequence
from typing import Literal

import attrs

from beaver_hooks_local.filters import Filters
from beaver_hooks_local.hosting.memory import LocalMemory
from beaver_hooks_local.records import Memory, NewMemory, Owner, Store
from beaver_hooks_local.store.hashing import hash_of

Key = tuple[Owner, Store, str]


@attrs.frozen(kw_only=True)
class Kept:
    """What became of a memory that was to be added.

    Attributes:
        id: its id, or that of the same memory that was there.
        outcome: whether it was there.
        mentions: how often it was said.
    """

    id: int
    outcome: Literal["stored", "duplicate"]
    mentions: int = 1


def remember(memory: LocalMemory, new: NewMemory) -> Kept:
    """Store a memory, or count one more mention of the same."""
    there = _same(memory, new)
    if there is not None:
        count = there.mention_count + 1
        filters = Filters(owners=(new.owner,), now=memory.clock.now())
        if memory.engine.change(there.id, filters, event="UPDATE", mention_count=count) is not None:
            return Kept(id=there.id, outcome="duplicate", mentions=count)
    (id_,) = memory.engine.add(new)
    return Kept(id=id_, outcome="stored")


def remember_all(memory: LocalMemory, batch: Sequence[NewMemory]) -> list[Kept]:
    """Store memories, all or none of them; what is there is left as it is. Return what became of each, in order."""
    keyed = [(_key(new), new) for new in batch]
    first: dict[Key, NewMemory] = {}
    for key, new in keyed:
        first.setdefault(key, new)
    there = {key: same for key, new in first.items() if (same := _same(memory, new)) is not None}
    fresh = {key: new for key, new in first.items() if key not in there}
    stored = dict(zip(fresh, memory.engine.add(fresh.values()), strict=True))
    kept = {key: Kept(id=each.id, outcome="duplicate", mentions=each.mention_count) for key, each in there.items()}
    result = []
    for key, _ in keyed:
        result.append(kept.get(key) or Kept(id=stored[key], outcome="stored"))
        kept.setdefault(key, attrs.evolve(result[-1], outcome="duplicate"))
    return result


def _key(new: NewMemory) -> Key:
    return new.owner, new.store, hash_of(new.title, new.facts)


def _same(memory: LocalMemory, new: NewMemory) -> Memory | None:
    """Return the same memory of the same owner in the same store, if it is there."""
    now = memory.clock.now()
    id_ = memory.engine.store.find_hash(new.owner, hash_of(new.title, new.facts), now=now)
    found = memory.engine.get([id_], Filters(owners=(new.owner,), stores=(new.store,), now=now)) if id_ else []
    return found[0] if found else None
