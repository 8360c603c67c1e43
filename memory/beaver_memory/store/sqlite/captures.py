"""Counts what capture takes in a day, and records captured turns and forgotten texts.

The key of the hashes of forgotten texts is a private file beside the database, made when the first text is forgotten.
It is no part of the database and of its backups, so neither a copy nor a backup allows to test a guess. Without the
file, capture knows no forgotten text.
"""

import errno
import secrets
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.records import CaptureSpend
from beaver_memory.store.bounds import limits
from beaver_memory.store.sqlite.owners import OwnerKey
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.texts import cleaned
from beaver_toolkit.files import create_once, open_regular

_SQL = sqlite_queries("captures")

LENGTH = 32
"""Bytes of a key."""

_UNWRITABLE = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.EROFS: "read_only"}
"""Categories of faults of a disk that takes no new file."""


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
