"""The queue of turns in the SQLite file; see `TurnQueue` for what each method does."""

from collections.abc import Sequence
from datetime import datetime

import apsw

from beaver_memory.records import Owner, QueuedSession
from beaver_memory.store.bounds import bounded
from beaver_memory.store.sqlite import captures
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.owners import NO_OWNER, owner_of
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.turn_queue import (
    QueuedTurn,
    claim_values,
    due_values,
    in_order,
    place_values,
    turn_of,
    values_of,
)
from beaver_memory.texts import cleaned, micros, micros_or_none
from beaver_memory.views import Project, Reach, stored

_SQL = sqlite_queries("turn_queue")


class SqliteTurnQueue:
    """The queue of one store.

    Args:
        connector: lends the connections of the store.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    def put(self, turn: QueuedTurn) -> bool:
        """Add a turn; return whether it was not there."""
        with self._connector.writing() as connection:
            tenant, owner = self._connector.owners.give(connection, turn.place.owner)
            connection.execute(_SQL["put"], {"tenant": tenant, "owner": owner} | values_of(turn))
            return connection.changes() > 0

    def sessions(
        self, now: datetime, reach: Reach, *, limit: int, before: datetime | None = None
    ) -> list[QueuedSession]:
        """Return sessions whose turns are due, the oldest first."""
        given = due_values(now, before) | _tenant(reach.tenant) | _project(reach.project) | {"limit": bounded(limit)}
        with self._connector.reading() as connection:
            return [
                QueuedSession(owner=owner_of(*names), session=session, project=project, agent=agent, store=store)
                for *names, session, project, agent, store in connection.execute(_SQL["sessions"], given)
            ]

    def claim(self, place: QueuedSession, now: datetime, *, limit: int) -> list[QueuedTurn]:
        """Claim the turns of a session that were never claimed or are due, in order."""
        with self._connector.writing() as connection:
            tenant, owner = self._connector.owners.find(connection, place.owner) or NO_OWNER
            given = {"tenant": tenant, "owner": owner} | place_values(place) | claim_values(now)
            connection.execute(_SQL["park"], given)
            rows = connection.execute(_SQL["claim"], given | {"limit": bounded(limit)}).fetchall()
        return in_order(place.owner, rows)

    def finish(self, turns: Sequence[QueuedTurn]) -> None:
        """Record claimed turns as captured, and remove them, in one transaction."""
        if not turns:
            return
        with self._connector.writing() as connection:
            for each in turns:
                key = self._connector.owners.give(connection, each.place.owner)
                connection.execute(_SQL["remove"], (*key, each.key, each.attempts))
                captures.mark_captured(connection, key, [each.turn])

    def postpone(self, turns: Sequence[QueuedTurn], until: datetime | None, error: str) -> None:
        """End the claims of turns; they are due at a moment, or parked."""
        with self._connector.writing() as connection:
            for each in turns:
                key = self._connector.owners.find(connection, each.place.owner) or NO_OWNER
                row = (micros_or_none(until), cleaned(error), *key, each.key, each.attempts)
                connection.execute(_SQL["postpone"], row)

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners of waiting turns, of a tenant or of all."""
        with self._connector.reading() as connection:
            rows = connection.execute(_SQL["owners"], _tenant(tenant))
            return [owner_of(*names) for names in rows]

    def waiting(self, owner: Owner, project: Project, *, limit: int) -> list[QueuedTurn]:
        """Return the turns of an owner in a project, in order."""
        with self._connector.reading() as connection:
            tenant, number = self._connector.owners.find(connection, owner) or NO_OWNER
            given = {"tenant": tenant, "owner": number, "limit": bounded(limit)} | _project(project)
            return [turn_of(owner, row) for row in connection.execute(_SQL["waiting"], given)]

    def retry(self, owner: Owner, project: Project, now: datetime, key: str = "") -> int:
        """Make the parked turns of an owner in a project due; return their number."""
        return self._changed("retry", owner, now=micros(now), key=cleaned(key), **_project(project))

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn; return whether it was there."""
        return self._erased("drop", owner, key=cleaned(key)) > 0

    def erase(self, owner: Owner, project: Project, session: str | None = None) -> int:
        """Erase the turns of an owner in a project; return their number."""
        given = {"one_session": session is not None, "session": cleaned(session or "")}
        return self._erased("erase", owner, **given, **_project(project))

    def _erased(self, name: str, owner: Owner, **values: object) -> int:
        gone = self._changed(name, owner, **values)
        if gone:
            self._connector.empty_log()
        return gone

    def _changed(self, name: str, owner: Owner, **values: object) -> int:
        with self._connector.writing() as connection:
            tenant, number = self._connector.owners.find(connection, owner) or NO_OWNER
            connection.execute(_SQL[name], {"tenant": tenant, "owner": number, **values})
            return int(connection.changes())


def _tenant(name: str | None) -> dict[str, str | None]:
    return {"tenant": None if name is None else cleaned(name)}


def _project(project: Project) -> dict[str, str | None]:
    return {"project": stored(project)}


def count_parked(connection: apsw.Connection) -> int:
    """Return how many turns of all owners are parked."""
    return int(connection.execute(_SQL["count_parked"]).get)
