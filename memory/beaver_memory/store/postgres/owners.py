"""Numbers of tenants and owners, and ids of memories, which a process takes in blocks.

Rows refer to a tenant and to an owner by small numbers, which never change. A number is given in a transaction of its
own: it stays when the write that needed it fails.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import attrs

from beaver_memory.records import Owner
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import cleaned

_SQL = queries_of("postgres", "owners")

K = TypeVar("K")
V = TypeVar("V")

MOST_KNOWN = 10_000

_DROPS = (
    "drop_history",
    "drop_embeddings",
    "drop_embedded",
    "drop_summaries",
    "drop_days",
    "drop_turns",
    "drop_forgotten",
    "drop_rows",
    "drop_owner",
)
"""The statements that delete the rows of an owner, in the order of their references."""

_CAPTURE_DROPS = ("drop_days", "drop_turns", "drop_forgotten")
"""The statements that delete the records of the capture of an owner's memories."""

BLOCK = 64
"""Ids that a process takes at once."""


@attrs.frozen
class OwnerKey:
    """The numbers of an owner and of its tenant; ordered, so that every write locks owners in one order."""

    tenant: int
    owner: int


NO_OWNER = OwnerKey(0, 0)
"""No tenant and no owner have the number 0, so a query finds no rows."""


class OwnerNumbers:
    """Finds the numbers of tenants and owners, and caches them. Thread-safe."""

    def __init__(self) -> None:
        self._tenants: dict[str, int] = {}
        self._owners: dict[Owner, OwnerKey] = {}

    def tenant(self, connection: Any, name: str) -> int:
        """Return the number of a tenant, 0 for one without memories."""
        known = self._tenants.get(name)
        if known is None:
            row = connection.execute(_SQL["find_tenant"], {"name": cleaned(name)}).fetchone()
            known = 0 if row is None else self._keep(self._tenants, name, int(row[0]))
        return known

    def key(self, connection: Any, owner: Owner) -> OwnerKey | None:
        """Return the numbers of an owner, `None` for one without memories."""
        known = self._owners.get(owner)
        if known is None and (tenant := self.tenant(connection, owner.tenant)):
            given = {"tenant": tenant, "kind": owner.kind, "name": cleaned(owner.user)}
            row = connection.execute(_SQL["find_owner"], given).fetchone()
            known = None if row is None else self._keep(self._owners, owner, OwnerKey(tenant, int(row[0])))
        return known

    def keys(self, connection: Any, owners: Iterable[Owner]) -> dict[int, Owner]:
        """Return those of a tenant's owners who have memories, by number."""
        found = ((self.key(connection, owner), owner) for owner in owners)
        return {key.owner: owner for key, owner in found if key is not None}

    def give(self, connection: Any, owner: Owner) -> OwnerKey:
        """Return the numbers of an owner, new ones if it has none. The connection has no transaction."""
        known = self.key(connection, owner)
        while known is None:
            tenant = self._give_tenant(connection, owner.tenant)
            given = {"tenant": tenant, "kind": owner.kind, "name": cleaned(owner.user)}
            connection.execute(_SQL["add_owner"], given)
            known = self.key(connection, owner)
        return known

    def drop(self, connection: Any, owner: Owner) -> None:
        """Delete every row of an owner, unless it has memories. Within a transaction."""
        key = self.key(connection, owner)
        if key is not None and not live(connection, key):
            for statement in _DROPS:
                connection.execute(_SQL[statement], _of(key))
            self._owners.pop(owner, None)

    def drop_capture_records(self, connection: Any, owner: Owner) -> None:
        """Delete the records of the capture of an owner's memories. Within a transaction."""
        key = self.key(connection, owner) or NO_OWNER
        for statement in _CAPTURE_DROPS:
            connection.execute(_SQL[statement], _of(key))

    def holdings(self, connection: Any, owner: Owner) -> dict[str, int]:
        """Return how many rows tell of an owner, by place."""
        rows = connection.execute(_SQL["holdings"], _of(self.key(connection, owner) or NO_OWNER))
        return {str(place): int(count) for place, count in rows}

    def _give_tenant(self, connection: Any, name: str) -> int:
        while not (known := self.tenant(connection, name)):
            # Another process may take the number, or add the tenant.
            connection.execute(_SQL["add_tenant"], {"name": cleaned(name)})
        return known

    def _keep(self, known: dict[K, V], key: K, value: V) -> V:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = value
        return value


class IdBlocks:
    """Gives ids of memories: within a tenant none is given twice, by any process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[int, range] = {}

    def take(self, connection: Any, tenant: int, count: int) -> list[int]:
        """Return ids, each greater than those before. The connection has no transaction."""
        with self._lock:
            left = self._left.get(tenant, range(0))
            found = list(left[:count])
            if len(found) < count:
                size = max(BLOCK, count - len(found))
                row = connection.execute(_SQL["take_ids"], {"tenant": tenant, "count": size}).fetchone()
                left = range(row[0] - size, row[0])
                missing = count - len(found)
                found, left = [*found, *left[:missing]], left[missing:]
            else:
                left = left[count:]
            if len(self._left) >= MOST_KNOWN:
                self._left.clear()
            self._left[tenant] = left
        return found


def tenant_of(owners: Sequence[Owner]) -> str:
    """Return the tenant of owners.

    Raises:
        ValueError: they are of several tenants.
    """
    names = {owner.tenant for owner in owners}
    if len(names) > 1:
        raise ValueError("owners must be of one tenant: an id names one memory within a tenant")
    return names.pop() if names else ""


def live(connection: Any, key: OwnerKey) -> int:
    """Return how many memories of an owner are not forgotten."""
    row = connection.execute(_SQL["live"], _of(key)).fetchone()
    return int(row[0]) if row else 0


def _of(key: OwnerKey) -> dict[str, int]:
    return {"tenant": key.tenant, "owner": key.owner}


def live_owners(connection: Any, tenant: str | None) -> list[Owner]:
    """Return the owners who have memories that are not forgotten, of a tenant or of all."""
    rows = connection.execute(_SQL["live_owners"], {"tenant": None if tenant is None else cleaned(tenant)})
    return [Owner(tenant=name, user=user, kind=kind) for name, user, kind in rows]


def all_owners(connection: Any, tenant: int) -> dict[int, Owner]:
    """Return the owners of a tenant by number."""
    rows = connection.execute(_SQL["owners_of_tenant"], {"tenant": tenant})
    return {number: Owner(tenant=name, user=user, kind=kind) for number, name, user, kind in rows}
