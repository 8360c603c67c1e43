"""The store that keeps memories in the memory of a process, for tests, demonstrations and programs without a disk."""

from beaver_memory.store.in_memory.store import InMemoryStore
from beaver_memory.store.in_memory.tables import Database

__all__ = ["Database", "InMemoryStore"]
