"""Who may see which store. The one table that every tool, command and hook goes by."""

from beaver_hostspecs import Caller, Trust
from beaver_memory.records import Store

VISIBLE: dict[Trust, tuple[Store, ...]] = {
    Trust.FULL: (Store.PRIVATE, Store.SHARED, Store.SOCIAL),
    Trust.INNER: (Store.SHARED, Store.SOCIAL),
    Trust.FAMILIAR: (Store.SOCIAL,),
    Trust.PUBLIC: (),
}


def visible_stores(trust: Trust) -> tuple[Store, ...]:
    """Return what somebody with this trust may see."""
    return VISIBLE[trust]


def hidden_stores(trust: Trust) -> tuple[Store, ...]:
    """Return what somebody with this trust may not see."""
    return tuple(each for each in Store if each not in VISIBLE[trust])


def sees_any(caller: Caller) -> bool:
    """Whether a caller may see any store: tools and commands are for those who do."""
    return bool(VISIBLE[caller.trust])


def default_store(trust: Trust) -> Store | None:
    """Return where what such a speaker says is kept, or `None` where nothing of it is."""
    stores = VISIBLE[trust]
    return stores[0] if stores else None
