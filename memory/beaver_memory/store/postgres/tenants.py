"""Answers the questions about one tenant of the store."""

from typing import Any

from beaver_memory.store.damaged_entries import broken_rule
from beaver_memory.store.postgres import integrity
from beaver_memory.store.queries import queries_of
from beaver_memory.texts import cleaned

_SQL = queries_of("postgres", "tenants")

_RULES = (
    ("wrong_texts", "memories have no texts, or texts no memory"),
    ("wrong_embeddings", "embeddings do not belong to their memories"),
)


def stats(connection: Any, name: str) -> dict[str, Any]:
    """Return the counts of a tenant, by name."""
    return integrity.stats(connection, _SQL, {"tenant": _number_of(connection, name)})


def problems(connection: Any, name: str) -> list[str]:
    """Return the problems of a tenant, one sentence each."""
    tenant = _number_of(connection, name)
    wrong = {what: _count(connection, rule, tenant) for rule, what in _RULES}
    broken = (broken_rule(count, what) for what, count in wrong.items() if count)
    return [*broken, *integrity.damage(connection, [(tenant, cleaned(name))])]


def _number_of(connection: Any, name: str) -> int:
    """Return the number of a tenant, 0 for one without memories."""
    row = connection.execute(_SQL["find_tenant"], {"name": cleaned(name)}).fetchone()
    return int(row[0]) if row else 0


def _count(connection: Any, query: str, tenant: int) -> int:
    return int(connection.execute(_SQL[query], {"tenant": tenant}).fetchone()[0])
