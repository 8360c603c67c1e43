"""The queue of turns in the SQLite file, see `TurnQueue`; what capture takes in a day; captured and forgotten texts.

The key of the hashes of forgotten texts is a private file beside the database, made when the first text is forgotten.
It is no part of the database and of its backups, so neither a copy nor a backup allows to test a guess. Without the
file, capture knows no forgotten text.
"""

import errno
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.records import CaptureSpend, Owner, QueuedSession
from beaver_memory.store.bounds import bounded, limits
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite.connections import Connector
from beaver_memory.store.sqlite.owners import NO_OWNER, OwnerKey, owner_of
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
from beaver_toolkit.files import create_once, open_regular

_SQL = queries_of("sqlite", "turn_queue")

LENGTH = 32
"""Bytes of a key."""

_UNWRITABLE = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.EROFS: "read_only"}
"""Categories of faults of a disk that takes no new file."""


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
                mark_captured(connection, key, [each.turn])

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


def spent(connection: apsw.Connection, owner: OwnerKey, day: date) -> CaptureSpend:
    """Return what capture has taken of an owner's day."""
    row = connection.execute(_SQL["spent"], (*owner, day.isoformat())).fetchone()
    return CaptureSpend() if row is None else CaptureSpend(memories=row[0], calls=row[1], tokens=row[2])


def spend(connection: apsw.Connection, owner: OwnerKey, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
    """Add to what capture takes of an owner's day, unless a limit would be passed; return whether it was added."""
    if not CaptureSpend().fits(amount, most):
        return False  # The first row of a day is inserted without a comparison.
    given = {"tenant": owner[0], "owner": owner[1], "day": day.isoformat()}
    connection.execute(_SQL["spend"], given | limits(amount, most))
    return connection.changes() > 0


def captured(connection: apsw.Connection, owner: OwnerKey, turns: Collection[str]) -> set[str]:
    """Return those turns from which the owner's memories were captured."""
    return {turn for turn in turns if connection.execute(_SQL["is_captured"], (*owner, cleaned(turn))).fetchone()}


def mark_captured(connection: apsw.Connection, owner: OwnerKey, turns: Collection[str]) -> None:
    """Record that an owner's memories were captured from turns."""
    connection.executemany(_SQL["mark_captured"], [(*owner, cleaned(turn)) for turn in turns])


def mark_forgotten(connection: apsw.Connection, owner: OwnerKey, digests: Iterable[bytes]) -> None:
    """Record hashes of texts that an owner has forgotten."""
    connection.executemany(_SQL["mark_forgotten"], [(*owner, each) for each in digests])


def forgotten(connection: apsw.Connection, owner: OwnerKey, digests: Mapping[str, bytes]) -> set[str]:
    """Return those texts, given with their hashes, that an owner has forgotten."""
    return {
        text for text, each in digests.items() if connection.execute(_SQL["is_forgotten"], (*owner, each)).fetchone()
    }


def key_file(database: Path) -> Path:
    """Return the file that holds the key of a database."""
    return database.with_name(f"{database.name}.key")


def read_key(database: Path) -> bytes | None:
    """Return the key of a database, or `None` if it has none.

    Raises:
        StoreError: the file cannot be read, or is too short.
    """
    path = key_file(database)
    try:
        with open_regular(path, follow_links=False) as file:
            key = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(path, "cannot_open") from error
    if len(key) < LENGTH:
        raise StoreError(path, "corrupt")
    return key


def made_key(database: Path) -> bytes:
    """Return the key of a database, a new one if it has none.

    Raises:
        StoreError: the file cannot be read or made.
    """
    try:
        create_once(key_file(database), secrets.token_bytes(LENGTH))
    except OSError as error:
        category = _UNWRITABLE.get(error.errno or 0, "cannot_open")
        raise StoreError(key_file(database), category) from error
    key = read_key(database)
    if key is None:
        raise StoreError(key_file(database), "missing")
    return key
