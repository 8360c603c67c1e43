"""Versions: numbers of changes, for the whole store, each greater than all before it."""

import apsw


def next_version(connection: apsw.Connection, count: int = 1) -> int:
    """Take `count` versions and return the first; they are in order of commits, as only one process writes at once."""
    last = connection.execute("UPDATE counter SET value = value + ? RETURNING value", (count,)).get
    return int(last) - count + 1
