"""Numbers of owners: rows refer to an owner by a small number."""

from collections.abc import Iterable

import apsw

from beaver_memory.records import Owner
from beaver_memory.texts import cleaned

MOST_KNOWN = 10_000


class OwnerBook:
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
        connection.execute("INSERT INTO owners (tenant, user) VALUES (?, ?)", _key(owner))
        return connection.last_insert_rowid()

    def _remember(self, owner: Owner, number: int) -> int:
        if len(self._numbers) >= MOST_KNOWN:
            self._numbers.clear()
        self._numbers[owner] = number
        return number


def _find(connection: apsw.Connection, owner: Owner) -> int | None:
    row = connection.execute("SELECT id FROM owners WHERE tenant = ? AND user = ?", _key(owner)).fetchone()
    return None if row is None else int(row[0])


def _key(owner: Owner) -> tuple[str, str]:
    return cleaned(owner.tenant), cleaned(owner.user)
