"""The stores that the suite and the state machine run against.

Each entry of `STORES` is a context manager: it gives a function that opens a store over the same, at first empty, data
each time it is called.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType

import postgres_server

from beaver_hostspecs import Secret
from beaver_memory.store.in_memory import Database, InMemoryStore
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.shared import SharedStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.testing.stores import OpenStore

OpenShared = Callable[[], SharedStore]


@contextlib.contextmanager
def sqlite() -> Iterator[OpenStore]:
    """A database in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: SqliteStore.open(Path(folder) / "memory.db")


@contextlib.contextmanager
def in_memory() -> Iterator[OpenShared]:
    """A database in the memory of this process."""
    database = Database()
    yield lambda: InMemoryStore(database)


@contextlib.contextmanager
def postgres() -> Iterator[OpenShared]:
    """A schema in the PostgreSQL database of this worker, emptied before."""
    url = postgres_server.shared()
    postgres_server.emptied(url)
    yield lambda: PostgresStore.open(Secret(url), schema=postgres_server.SCHEMA)


STORES: Mapping[str, Callable[[], AbstractContextManager[OpenStore]]] = MappingProxyType(
    {"sqlite": sqlite, "in_memory": in_memory, "postgres": postgres}
)

NAMES = ["sqlite", "postgres", "in_memory"]
