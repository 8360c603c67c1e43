"""The store in one SQLite file, with its migrations and its SQL."""

from beaver_memory.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
