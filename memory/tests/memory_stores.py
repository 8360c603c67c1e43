"""The stores that the suite and the state machine run against.

Each entry of `STORES` is a context manager: it gives a function that opens a store over the same, at first empty, data
each time it is called.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import postgres_server
from selection import campaign

from beaver_hostspecs import Secret
from beaver_memory.records import Owner
from beaver_memory.store.in_memory import Database, InMemoryStore
from beaver_memory.store.postgres import PostgresStore
from beaver_memory.store.shared import SharedStore
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.store.tenant import TenantStore
from beaver_memory.testing.store_cases.kit import NOW, new
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


@contextlib.contextmanager
def tenant(of: Callable[[], AbstractContextManager[OpenShared]]) -> Iterator[OpenStore]:
    """One tenant of a shared store; the others, with similar names, stay as they are."""
    names = ("", "acm", "acmes", "x")
    with of() as open_store, contextlib.closing(open_store()) as others:
        others.add([new(f"of {name}", owner=Owner(tenant=name)) for name in names], now=NOW)
        for name in names:
            others.put_vectors(Owner(tenant=name), "m", [(1, b"other")])

        def figures() -> list[dict[str, Any]]:
            # The terms are those of one analyser in the whole database.
            return [{**others.stats_of(name), "bytes": 0} for name in names]

        before = figures()
        yield lambda: TenantStore(open_store, "acme")
        assert before == figures()


STORES: Mapping[str, Callable[[], AbstractContextManager[OpenStore]]] = MappingProxyType(
    {
        "sqlite": sqlite,
        "in_memory": in_memory,
        "tenant_in_memory": partial(tenant, in_memory),
        "postgres": postgres,
        "tenant_in_postgres": partial(tenant, postgres),
    }
)

NAMES = ["sqlite", "tenant_in_memory", "postgres", *campaign("in_memory", "tenant_in_postgres")]
"""The names of the stores; the last two repeat what the others show."""
