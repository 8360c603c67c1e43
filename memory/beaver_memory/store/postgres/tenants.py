"""Answers the questions about one tenant of the store."""

from typing import Any

from beaver_memory.store.damaged_entries import broken_rule
from beaver_memory.store.postgres.integrity import damage
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.texts import cleaned

_SQL = postgres_queries("tenants")

_RULES = (
    ("wrong_texts", "memories have no texts, or texts no memory"),
    ("wrong_embeddings", "embeddings do not belong to their memories"),
)


def stats(connection: Any, name: str) -> dict[str, Any]:
    """Return the counts of a tenant, by name."""
    tenant = _number_of(connection, name)
    by_store = _counted(connection, "count_by_store", tenant)
    return {
        "memories": sum(by_store.values()),
        "forgotten": _count(connection, "count_forgotten", tenant),
        "owners": _count(connection, "count_owners", tenant),
        "stores": by_store,
        "types": _counted(connection, "count_by_type", tenant),
        "embeddings": _counted(connection, "count_by_model", tenant),
        "bytes": _count(connection, "count_bytes", tenant),
    }


def problems(connection: Any, name: str) -> list[str]:
    """Return the problems of a tenant, one sentence each."""
    tenant = _number_of(connection, name)
    wrong = {what: _count(connection, rule, tenant) for rule, what in _RULES}
    broken = (broken_rule(count, what) for what, count in wrong.items() if count)
    return [*broken, *damage(connection, [(tenant, cleaned(name))])]


def _number_of(connection: Any, name: str) -> int:
    """Return the number of a tenant, 0 for one without memories."""
    row = connection.execute(_SQL["find_tenant"], {"name": cleaned(name)}).fetchone()
    return int(row[0]) if row else 0


def _count(connection: Any, query: str, tenant: int) -> int:
    return int(connection.execute(_SQL[query], {"tenant": tenant}).fetchone()[0])


def _counted(connection: Any, query: str, tenant: int) -> dict[str, int]:
    return {str(name): int(count) for name, count in connection.execute(_SQL[query], {"tenant": tenant})}
