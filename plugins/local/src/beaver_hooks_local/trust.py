"""The stores that each level of trust may see: the one table for all tools, commands and hooks."""

from beaver_hostspecs import Caller, Trust
from beaver_memory.records import Store

VISIBLE: dict[Trust, tuple[Store, ...]] = {
    Trust.FULL: (Store.PRIVATE, Store.SHARED, Store.SOCIAL),
    Trust.INNER: (Store.SHARED, Store.SOCIAL),
    Trust.FAMILIAR: (Store.SOCIAL,),
    Trust.PUBLIC: (),
}


def visible_stores(trust: Trust) -> tuple[Store, ...]:
    """Return the stores that a caller with this trust may see."""
    return VISIBLE[trust]


def hidden_stores(trust: Trust) -> tuple[Store, ...]:
    """Return the stores that a caller with this trust may not see."""
    return tuple(each for each in Store if each not in VISIBLE[trust])


def sees_any(caller: Caller) -> bool:
    """Return whether a caller may see any store; only such callers get tools and commands."""
    return bool(VISIBLE[caller.trust])


def default_store(trust: Trust) -> Store | None:
    """Return the store for memories of a speaker with this trust, or `None` if the trust allows none."""
    stores = VISIBLE[trust]
    return stores[0] if stores else None
