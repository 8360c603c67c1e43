"""The part of a store that a question may see: a tenant, its visible owners, and the conditions of the filters."""

from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Store
from beaver_memory.store.postgres.owners import OwnerNumbers
from beaver_memory.store.postgres.sql_filters import Conditions, conditions


@attrs.frozen(kw_only=True)
class Seen:
    """What a question may see.

    Attributes:
        tenant: the number of the tenant, 0 for one without memories.
        owners: the visible owners by number; none if the filters allow no store.
        which: the conditions for a visible memory.
        every_store: whether all stores are visible.
    """

    tenant: int
    owners: dict[int, Owner]
    which: Conditions
    every_store: bool = False

    def params(self, **more: Any) -> dict[str, Any]:
        """Return the values for a statement with the conditions."""
        return self.which.params | {"tenant": self.tenant, "owners": [*self.owners]} | more


def seen(connection: Any, book: OwnerNumbers, filters: Filters) -> Seen:
    """Return what filters allow to see."""
    owners = filters.view.owners if filters.view.stores else ()
    tenant = book.tenant(connection, filters.view.tenant) if owners else 0
    keys, every = book.keys(connection, owners), {*filters.view.stores} == {*Store}
    return Seen(tenant=tenant, owners=keys, which=conditions(filters), every_store=every)
