"""A database of notes, in a folder of its own."""

import contextlib

from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError

SCRIPTS = ["CREATE TABLE notes (text TEXT NOT NULL) STRICT"]


def opened(path):
    return contextlib.closing(Database.open(path, SCRIPTS))


def add(database, text):
    with database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES (?)", (text,))


def refusal(call):
    """Return the category of the error that a call raises; nothing if it raises none."""
    try:
        call()
    except DatabaseError as error:
        return error.category
    return ""


def beside(path, ending):
    return path.with_name(f"{path.name}{ending}")
