"""Caches the newest version and vector per owner until the next write."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import apsw

from beaver_memory.records import Owner
from beaver_memory.store.sqlite.owners import OwnerNumbers
from beaver_memory.store.sqlite.versions import last_versions
from beaver_memory.texts import cleaned

MOST_KNOWN = 1_000
"""Answers that are cached for a connection."""

Versions = list[tuple[int, int]]
"""Of each owner: the version of the newest change, and of the newest embedding by a model."""

_Known = dict[tuple[tuple[Owner, ...], str | None], Versions]


class VersionCache:
    """Tells the versions of owners. Thread-safe.

    Every search asks for them first. SQLite says in one step whether another connection has written since the last
    question on this one, and connections that are lent for reading never write.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[apsw.Connection, tuple[int, _Known]] = WeakKeyDictionary()

    def of(
        self, connection: apsw.Connection, book: OwnerNumbers, owners: Sequence[Owner], model: str | None
    ) -> Versions:
        """Return the versions of owners, within a transaction of a connection that only reads."""
        moment = int(connection.execute("PRAGMA data_version").get)
        then, known = self._known.get(connection, (None, {}))
        if then != moment:
            known = {}
            self._known[connection] = moment, known
        key = tuple(owners), model
        if key not in known:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[key] = _versions(connection, book, owners, model)
        return list(known[key])


def _versions(connection: apsw.Connection, book: OwnerNumbers, owners: Sequence[Owner], model: str | None) -> Versions:
    name = None if model is None else cleaned(model)
    keys = [book.find(connection, owner) for owner in owners]
    # An owner without memories has no number either.
    return [last_versions(connection, key, name) if key else (0, 0) for key in keys]
