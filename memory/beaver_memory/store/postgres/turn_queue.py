"""The queue of turns in the PostgreSQL database; see `TurnQueue` for what each method does.

Workers claim with `FOR UPDATE SKIP LOCKED`: none waits for another, and no turn is claimed twice. Beside the queue:
what capture takes in a day, captured turns and forgotten texts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from beaver_memory.records import CaptureSpend, Owner, QueuedSession
from beaver_memory.store.bounds import bounded, limits
from beaver_memory.store.postgres.connector import Connector
from beaver_memory.store.postgres.owners import OwnerKey, OwnerNumbers
from beaver_memory.store.queries import queries_of
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

_SQL = queries_of("postgres", "turn_queue")


class PostgresTurnQueue:
    """The queue of one store.

    Args:
        connector: lends the connections of the store.
        owners: finds the numbers of owners.
    """

    def __init__(self, connector: Connector, owners: OwnerNumbers) -> None:
        self._connector, self._numbers = connector, owners

    def put(self, turn: QueuedTurn) -> bool:
        """Add a turn; return whether it was not there."""
        with self._connector.reading() as connection:
            key = self._numbers.give(connection, turn.place.owner)
            given = {"tenant": key.tenant, "owner": key.owner} | values_of(turn)
            return bool(connection.execute(_SQL["put"], given).rowcount)

    def sessions(
        self, now: datetime, reach: Reach, *, limit: int, before: datetime | None = None
    ) -> list[QueuedSession]:
        """Return sessions whose turns are due, the oldest first of each tenant."""
        given = due_values(now, before) | _project(reach.project)
        found: list[QueuedSession] = []
        with self._connector.reading() as connection:
            for number, tenant in self._tenants(connection, reach.tenant):
                left = {"tenant": number, "limit": bounded(limit - len(found))}
                for user, kind, session, project, agent, store in connection.execute(_SQL["sessions"], given | left):
                    owner = Owner(tenant=tenant, user=user, kind=kind)
                    place = QueuedSession(owner=owner, session=session, project=project, agent=agent, store=store)
                    found.append(place)
        return found

    def claim(self, place: QueuedSession, now: datetime, *, limit: int) -> list[QueuedTurn]:
        """Claim the turns of a session that were never claimed or are due, in order."""
        with self._connector.reading() as connection:
            given = self._key(connection, place.owner) | place_values(place) | claim_values(now)
            connection.execute(_SQL["park"], given)
            rows = connection.execute(_SQL["claim"], given | {"limit": bounded(limit)}).fetchall()
        return in_order(place.owner, rows)

    def finish(self, turns: Sequence[QueuedTurn]) -> None:
        """Record claimed turns as captured, and remove them, in one transaction."""
        if not turns:
            return
        with self._connector.reading() as connection:
            keys = {each.place.owner: self._numbers.give(connection, each.place.owner) for each in turns}
        with self._connector.writing() as connection:
            for each in turns:
                key = keys[each.place.owner]
                given = {"tenant": key.tenant, "owner": key.owner, "key": each.key, "attempts": each.attempts}
                connection.execute(_SQL["remove"], given)
                mark_captured(connection, key, [each.turn])

    def postpone(self, turns: Sequence[QueuedTurn], until: datetime | None, error: str) -> None:
        """End the claims of turns; they are due at a moment, or parked."""
        with self._connector.reading() as connection:
            for each in turns:
                given = {"key": each.key, "attempts": each.attempts, "due_at": micros_or_none(until)}
                key = self._key(connection, each.place.owner)
                connection.execute(_SQL["postpone"], key | given | {"error": cleaned(error)})

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners of waiting turns, of a tenant or of all."""
        with self._connector.reading() as connection:
            return [
                Owner(tenant=name, user=user, kind=kind)
                for number, name in self._tenants(connection, tenant)
                for _, user, kind in connection.execute(_SQL["owners"], {"tenant": number}).fetchall()
            ]

    def waiting(self, owner: Owner, project: Project, *, limit: int) -> list[QueuedTurn]:
        """Return the turns of an owner in a project, in order."""
        with self._connector.reading() as connection:
            given = self._key(connection, owner) | _project(project) | {"limit": bounded(limit)}
            return [turn_of(owner, row) for row in connection.execute(_SQL["waiting"], given)]

    def retry(self, owner: Owner, project: Project, now: datetime, key: str = "") -> int:
        """Make the parked turns of an owner in a project due; return their number."""
        return self._changed("retry", owner, now=micros(now), key=cleaned(key), **_project(project))

    def drop(self, owner: Owner, key: str) -> bool:
        """Erase a turn; return whether it was there."""
        return self._changed("drop", owner, key=cleaned(key)) > 0

    def erase(self, owner: Owner, project: Project, session: str | None = None) -> int:
        """Erase the turns of an owner in a project; PostgreSQL keeps erased rows in its files until VACUUM."""
        given = {"one_session": session is not None, "session": cleaned(session or "")}
        return self._changed("erase", owner, **given, **_project(project))

    def _changed(self, name: str, owner: Owner, **values: object) -> int:
        with self._connector.reading() as connection:
            return int(connection.execute(_SQL[name], self._key(connection, owner) | values).rowcount)

    def _key(self, connection: Any, owner: Owner) -> dict[str, Any]:
        key = self._numbers.key(connection, owner)
        # No owner has the number 0, so the statement finds no rows.
        return {"tenant": 0, "owner": 0} if key is None else {"tenant": key.tenant, "owner": key.owner}

    def _tenants(self, connection: Any, name: str | None) -> list[tuple[int, str]]:
        rows: list[tuple[int, str]] = connection.execute(_SQL["tenants"], {"name": name and cleaned(name)}).fetchall()
        return rows


def _project(project: Project) -> dict[str, str | None]:
    return {"project": stored(project)}


def spent(connection: Any, key: OwnerKey, day: date) -> CaptureSpend:
    """Return what capture has taken of an owner's day."""
    row = connection.execute(_SQL["spent"], _of(key) | {"day": day}).fetchone()
    return CaptureSpend() if row is None else CaptureSpend(memories=row[0], calls=row[1], tokens=row[2])


def spend(connection: Any, key: OwnerKey, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
    """Add to what capture takes of an owner's day, unless a limit would be passed; return whether it was added."""
    if not CaptureSpend().fits(amount, most):
        return False  # The first row of a day is inserted without a comparison.
    added = connection.execute(_SQL["spend"], _of(key) | {"day": day} | limits(amount, most))
    return bool(added.rowcount)


def captured(connection: Any, key: OwnerKey, turns: Collection[str]) -> set[str]:
    """Return those turns from which the owner's memories were captured."""
    names = {cleaned(turn): turn for turn in turns}
    rows = connection.execute(_SQL["captured"], _of(key) | {"turns": [*names]})
    return {names[turn] for (turn,) in rows}


def mark_captured(connection: Any, key: OwnerKey, turns: Collection[str]) -> None:
    """Record that an owner's memories were captured from turns."""
    connection.execute(_SQL["mark_captured"], _of(key) | {"turns": [cleaned(turn) for turn in turns]})


def mark_forgotten(connection: Any, key: OwnerKey, digests: Iterable[bytes]) -> None:
    """Record hashes of texts that an owner has forgotten."""
    connection.execute(_SQL["mark_forgotten"], _of(key) | {"digests": [*digests]})


def forgotten(connection: Any, key: OwnerKey, digests: Mapping[str, bytes]) -> set[str]:
    """Return those texts, given with their hashes, that an owner has forgotten."""
    rows = connection.execute(_SQL["forgotten"], _of(key) | {"digests": [*digests.values()]})
    known = {bytes(digest) for (digest,) in rows}
    return {text for text, digest in digests.items() if digest in known}


def _of(key: OwnerKey) -> dict[str, Any]:
    return {"tenant": key.tenant, "owner": key.owner}
