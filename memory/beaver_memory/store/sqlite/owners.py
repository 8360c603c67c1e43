"""Numbers of owners: rows refer to an owner by a small number."""

from collections.abc import Iterable

import apsw

from beaver_memory.records import Owner
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.texts import cleaned

_SQL = sqlite_queries("owners")

MOST_KNOWN = 10_000


class OwnerNumbers:
    """Finds the numbers of owners and caches them, since they never change. Thread-safe."""

    def __init__(self) -> None:
        self._numbers: dict[Owner, int] = {}

    def number(self, connection: apsw.Connection, owner: Owner) -> int | None:
        """Return an owner's number, `None` for one who has no memories."""
        known = self._numbers.get(owner)
        if known is not None:
            return known
        found = _find(connection, owner)
        return None if found is None else self._remember(owner, found)

    def numbers(self, connection: apsw.Connection, owners: Iterable[Owner]) -> dict[int, Owner]:
        """Return the owners who have memories, by number."""
        found = ((self.number(connection, owner), owner) for owner in owners)
        return {number: owner for number, owner in found if number is not None}

    def give(self, connection: apsw.Connection, owner: Owner) -> int:
        """Return an owner's number, a new one if it has none; a new one is not cached, as the transaction may fail."""
        known = self._numbers.get(owner) or _find(connection, owner)
        if known is not None:
            return known
        connection.execute(_SQL["add_owner"], _key(owner))
        return connection.last_insert_rowid()

    def _remember(self, owner: Owner, number: int) -> int:
        if len(self._numbers) >= MOST_KNOWN:
            self._numbers.clear()
        self._numbers[owner] = number
        return number


def live(connection: apsw.Connection, number: int) -> int:
    """Return how many memories of an owner are not forgotten."""
    return connection.execute(_SQL["live"], (number,)).get or 0


def owners(connection: apsw.Connection) -> dict[int, Owner]:
    """Return all owners by number."""
    return {number: Owner(tenant=tenant, user=user) for number, tenant, user in connection.execute(_SQL["owners"])}


def live_owners(connection: apsw.Connection) -> list[Owner]:
    """Return the owners who have memories that are not forgotten."""
    return [Owner(tenant=str(tenant), user=str(user)) for tenant, user in connection.execute(_SQL["live_owners"])]


def _find(connection: apsw.Connection, owner: Owner) -> int | None:
    row = connection.execute(_SQL["find_owner"], _key(owner)).fetchone()
    return None if row is None else int(row[0])


def _key(owner: Owner) -> tuple[str, str]:
    return cleaned(owner.tenant), cleaned(owner.user)
