"""Answers the questions about one tenant of the store, and its parts."""

from collections import Counter
from typing import Any

from beaver_memory.records import Owner
from beaver_memory.store.counts import broken_rule
from beaver_memory.store.postgres.embeddings import lock_counts
from beaver_memory.store.postgres.integrity import damage
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.texts import cleaned

_SQL = postgres_queries("tenants")

_RULES = (
    ("wrong_texts", "memories have no texts, or texts no memory"),
    ("wrong_embeddings", "embeddings do not belong to their memories"),
)


def owners(connection: Any, name: str) -> list[Owner]:
    """Return the owners of a tenant who have memories."""
    return [
        Owner(tenant=tenant, user=user)
        for number, tenant in _parts(connection, name)
        for (user,) in connection.execute(_SQL["owners"], {"tenant": number})
    ]


def pending(connection: Any, name: str, model: int) -> int:
    """Return how many memories of a tenant have no embedding by a model."""
    return sum(_number(connection, "pending", number, model=model) for number, _ in _parts(connection, name))


def drop_vectors(connection: Any, name: str, model: int) -> int:
    """Delete the embeddings of a tenant by a model; return their number. Runs within one transaction."""
    lock_counts(connection)
    gone = 0
    for number, _ in _parts(connection, name):
        given = {"tenant": number, "model": model}
        connection.execute(_SQL["uncount_model"], given)
        gone += connection.execute(_SQL["drop_vectors"], given).rowcount
    return gone


def stats(connection: Any, name: str) -> dict[str, Any]:
    """Return the counts of a tenant, by name."""
    parts = [number for number, _ in _parts(connection, name)]
    by_store = _counted(connection, "count_by_store", parts)
    return {
        "memories": sum(by_store.values()),
        "forgotten": _sum(connection, "count_forgotten", parts),
        "owners": _sum(connection, "count_owners", parts),
        "stores": by_store,
        "types": _counted(connection, "count_by_type", parts),
        "embeddings": _counted(connection, "count_by_model", parts),
        "bytes": _sum(connection, "count_bytes", parts),
    }


def problems(connection: Any, name: str) -> list[str]:
    """Return the problems of a tenant, one sentence each."""
    parts = _parts(connection, name)
    wrong = {what: sum(_number(connection, rule, number) for number, _ in parts) for rule, what in _RULES}
    return [*(broken_rule(count, what) for what, count in wrong.items() if count), *damage(connection, parts)]


def _parts(connection: Any, name: str) -> list[tuple[int, str]]:
    """Return the numbers and names of a tenant and its parts."""
    found: list[tuple[int, str]] = connection.execute(_SQL["parts"], {"name": cleaned(name)}).fetchall()
    return found


def _number(connection: Any, query: str, tenant: int, **given: Any) -> int:
    return int(connection.execute(_SQL[query], {"tenant": tenant, **given}).fetchone()[0])


def _sum(connection: Any, query: str, parts: list[int]) -> int:
    return sum(_number(connection, query, part) for part in parts)


def _counted(connection: Any, query: str, parts: list[int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update({str(name): int(count) for name, count in connection.execute(_SQL[query], {"tenant": part})})
    return dict(found)
