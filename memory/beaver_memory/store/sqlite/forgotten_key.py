"""The key of the hashes of forgotten texts: a private file beside the database, made when the first text is forgotten.

It is no part of the database and of its backups, so neither a copy nor a backup allows to test a guess. Without the
file, capture knows no forgotten text.
"""

import secrets
from pathlib import Path

from beaver_memory.errors import StoreError
from beaver_toolkit.files import create_once, open_regular

LENGTH = 32
"""Bytes of a key."""


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
        raise StoreError(key_file(database), "cannot_open") from error
    key = read_key(database)
    if key is None:
        raise StoreError(key_file(database), "missing")
    return key
