"""Versions: numbers of changes, in order of commits for each owner; and the changes above one."""

from collections.abc import Collection, Mapping
from typing import Any

from beaver_memory.records import Owner, Scope
from beaver_memory.store.bounds import bounded
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import index_row_of

_SQL = queries_of("postgres", "versions")


def take_versions(connection: Any, key: OwnerKey, count: int, *, live: int = 0, length: int = 0) -> int:
    """Take versions for changes of an owner's memories, and return the first.

    This is the first statement of a write: the owner's row stays locked until the commit, so that versions become
    visible in their order.

    Args:
        connection: a connection within a transaction.
        key: the owner.
        count: how many versions.
        live: how many memories there are more.
        length: how many terms there are more.
    """
    given = {"tenant": key.tenant, "owner": key.owner, "count": count, "live": live, "length": length}
    return int(connection.execute(_SQL["take_versions"], given).fetchone()[0]) - count + 1


def take_vector_versions(connection: Any, key: OwnerKey, count: int) -> int:
    """Take versions for embeddings, as `take_versions` does for memories."""
    given = {"tenant": key.tenant, "owner": key.owner, "count": count}
    return int(connection.execute(_SQL["take_vector_versions"], given).fetchone()[0]) - count + 1


def lock_owners(connection: Any, tenant: int, owners: Collection[int]) -> None:
    """Keep other writers away from owners until the transaction ends; this is the first statement of a write."""
    connection.execute(_SQL["lock_owners"], {"tenant": tenant, "owners": sorted(owners)}).fetchall()


def last_version(connection: Any, key: OwnerKey) -> int:
    """Return the version of the newest change of an owner's memories, 0 if there is none."""
    row = connection.execute(_SQL["last_version"], {"tenant": key.tenant, "owner": key.owner}).fetchone()
    return int(row[0]) if row else 0


def last_versions(
    connection: Any, tenant: int, owners: Mapping[int, Owner], model: int
) -> dict[Owner, tuple[int, int]]:
    """Return the versions of each owner's newest change and newest embedding by a model, 0 if there is none."""
    given = {"tenant": tenant, "owners": [*owners], "model": model}
    return {owners[number]: (change, vector) for number, change, vector in connection.execute(_SQL["versions"], given)}


def changed(connection: Any, key: OwnerKey, after: int, limit: int) -> list[IndexRow]:
    """Return the rows of an owner that have a version above `after`, in order of versions."""
    given = {"tenant": key.tenant, "owner": key.owner, "after": after, "limit": bounded(limit)}
    return [index_row_of(row) for row in connection.execute(_SQL["changed_memories"], given, binary=True)]


def ids(connection: Any, key: OwnerKey, scopes: Collection[Scope]) -> list[int]:
    """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
    given = {"tenant": key.tenant, "owner": key.owner, "scopes": [*scopes], "all": not scopes}
    return [id_ for (id_,) in connection.execute(_SQL["ids_by_version"], given)]
