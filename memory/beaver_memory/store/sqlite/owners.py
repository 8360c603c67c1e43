"""Numbers of tenants and owners: rows refer to them by small numbers. `Damage` counts damaged rows."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import apsw
import attrs
from attrs import field

from beaver_memory.records import Owner
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import cleaned

_SQL = queries_of("sqlite", "owners")

MOST_KNOWN = 10_000

_DROPS = (
    "drop_history",
    "drop_embeddings",
    "drop_labels",
    "drop_unembedded",
    "drop_summaries",
    "drop_people",
    "drop_days",
    "drop_turns",
    "drop_forgotten",
    "drop_rows",
    "drop_owner",
)
"""The statements that delete the rows of an owner, in the order of their references."""

_CAPTURE_DROPS = ("drop_days", "drop_turns", "drop_forgotten")
"""The statements that delete the records of the capture of an owner's memories."""

OwnerKey = tuple[int, int]
"""The number of a tenant, and the number of one of its owners, which is unique in the file, too."""

NO_OWNER: OwnerKey = (0, 0)
"""No tenant and no owner have the number 0, so a query finds no rows."""

DamageTold = Callable[[int], object]
"""Receives the number of rows that were found damaged since the store was opened."""


class Damage:
    """Keeps which rows were found damaged since the store was opened. Thread-safe.

    Args:
        told: called for each damaged row that was not known.
    """

    def __init__(self, told: DamageTold = bool) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._rows: set[tuple[str, int, int | str]] = set()

    def note(self, kind: str, tenant: int, id_: int | str) -> None:
        """Note a damaged row: its table, the number of its tenant, and the id of its memory or its name."""
        row = (kind, tenant, id_)
        if row in self._rows:
            return
        with self._lock:
            new, count = row not in self._rows, len(self._rows) + 1
            self._rows.add(row)
        if new:
            self._told(count)

    def of(self, tenant: int) -> "TenantDamage":
        """Return a function that notes damaged memories of a tenant."""
        return partial(self.note, "memory", tenant)


TenantDamage = Callable[[int], None]
"""Notes a damaged memory by its id."""


@attrs.frozen
class TenantOwners:
    """Owners of one tenant who have memories.

    Attributes:
        tenant: the number of the tenant, 0 if there are no owners.
        names: the owners by their numbers.
        damage: notes rows that fail their checksums.
    """

    tenant: int
    names: Mapping[int, Owner]
    damage: Damage = field(factory=Damage, repr=False)

    @property
    def damaged(self) -> TenantDamage:
        """Notes a memory of the tenant that fails its checksum."""
        return self.damage.of(self.tenant)

    def __bool__(self) -> bool:
        return bool(self.names)

    def __iter__(self) -> Iterator[OwnerKey]:
        """Yield the key of each owner."""
        return ((self.tenant, number) for number in self.names)


class OwnerNumbers:
    """Finds the keys of owners and caches them, since they never change. Thread-safe.

    Args:
        damage: notes rows that fail their checksums.
    """

    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        self._keys: dict[Owner, OwnerKey] = {}

    def find(self, connection: apsw.Connection, owner: Owner) -> OwnerKey | None:
        """Return an owner's key, `None` for one who has no memories."""
        known = self._keys.get(owner)
        if known is not None:
            return known
        found = _find(connection, owner)
        return None if found is None else self._remember(owner, found)

    def those_of(self, connection: apsw.Connection, owners: Iterable[Owner]) -> TenantOwners:
        """Return those of a tenant's owners who have memories."""
        found = ((self.find(connection, owner), owner) for owner in owners)
        known = [(key, owner) for key, owner in found if key is not None]
        tenant = known[0][0][0] if known else 0
        return TenantOwners(tenant, {key[1]: owner for key, owner in known}, self.damage)

    def give(self, connection: apsw.Connection, owner: Owner) -> OwnerKey:
        """Return an owner's key, a new one if it has none; a new one is not cached, as the transaction may fail."""
        known = self._keys.get(owner) or _find(connection, owner)
        if known is not None:
            return known
        names = _names(owner)
        connection.execute(_SQL["add_tenant"], names[:1])
        added = connection.execute(_SQL["add_owner"], names).get
        return int(added[0]), int(added[1])

    def drop(self, connection: apsw.Connection, owner: Owner) -> None:
        """Delete every row of an owner, unless it has memories."""
        key = self.find(connection, owner)
        if key is not None and not live(connection, key):
            for statement in _DROPS:
                connection.execute(_SQL[statement], _of(key))
            connection.execute(_SQL["lower_last_indexed"])
            self._keys.pop(owner, None)

    def drop_capture_records(self, connection: apsw.Connection, owner: Owner) -> None:
        """Delete the records of the capture of an owner's memories."""
        key = self.find(connection, owner) or NO_OWNER
        for statement in _CAPTURE_DROPS:
            connection.execute(_SQL[statement], _of(key))

    def holdings(self, connection: apsw.Connection, owner: Owner) -> dict[str, int]:
        """Return how many rows tell of an owner, by place."""
        key = self.find(connection, owner) or NO_OWNER
        rows: list[tuple[Any, ...]] = connection.execute(_SQL["holdings"], _of(key)).fetchall()
        return {str(place): int(count) for place, count in rows}

    def _remember(self, owner: Owner, key: OwnerKey) -> OwnerKey:
        if len(self._keys) >= MOST_KNOWN:
            self._keys.clear()
        self._keys[owner] = key
        return key


def tenant_number(connection: apsw.Connection, name: str) -> int:
    """Return the number of a tenant, 0 for one that has no memories."""
    return connection.execute(_SQL["find_tenant"], (cleaned(name),)).get or 0


def live(connection: apsw.Connection, key: OwnerKey) -> int:
    """Return how many memories of an owner are not forgotten."""
    return connection.execute(_SQL["live"], key).get or 0


def owners(connection: apsw.Connection) -> dict[int, Owner]:
    """Return all owners by number."""
    return {number: owner_of(*names) for number, *names in connection.execute(_SQL["owners"])}


def live_owners(connection: apsw.Connection, tenant: str | None) -> list[Owner]:
    """Return the owners who have memories that are not forgotten, of a tenant or of all."""
    rows = connection.execute(_SQL["live_owners"], (None if tenant is None else cleaned(tenant),))
    return [owner_of(*names) for names in rows]


def _of(key: OwnerKey) -> dict[str, int]:
    return {"tenant": key[0], "owner": key[1]}


def _find(connection: apsw.Connection, owner: Owner) -> OwnerKey | None:
    row = connection.execute(_SQL["find_owner"], _names(owner)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def owner_of(tenant: Any, user: Any, kind: Any) -> Owner:
    """Return an owner by the columns of its row."""
    return Owner(tenant=str(tenant), user=str(user), kind=kind)


def _names(owner: Owner) -> tuple[str, str, str]:
    return cleaned(owner.tenant), cleaned(owner.user), owner.kind
