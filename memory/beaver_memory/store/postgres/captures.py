"""Counts what capture takes in a day, and records captured turns and forgotten texts."""

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from beaver_memory.records import CaptureSpend
from beaver_memory.store.bounds import limits
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.texts import cleaned

_SQL = postgres_queries("captures")


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
