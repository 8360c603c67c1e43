"""The search for phrases and prefixes in the folded texts of an owner.

The texts are folded as the caller compares them, so the search finds each memory that holds all patterns.
"""

from collections.abc import Collection, Sequence
from typing import Any

from beaver_memory.patterns import Pattern
from beaver_memory.store.bounds import bounded
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.rows import readings, salted
from beaver_memory.store.postgres.sql_filters import Seen

_SQL = postgres_queries("word_search")

MOST_PATTERNS = 16
"""Patterns that the store compares; the caller compares all of them."""


def matching(
    connection: Any, seen: Seen, patterns: Sequence[Pattern], limit: int, terms: Collection[int] = ()
) -> list[int]:
    """Return ids of visible memories that hold all patterns, newest first.

    Args:
        connection: a connection.
        seen: what may be seen.
        patterns: the patterns.
        limit: the most ids to return.
        terms: terms that the memories must have; the index of words finds those that have them all.
    """
    wanted = [_parts(pattern) for pattern in patterns[:MOST_PATTERNS]]
    if not seen.owners or not wanted or not all(wanted):
        return []
    holds = [seen.which.of_live if terms else seen.which.sql]
    given: dict[str, Any] = {}
    if terms:
        for number in seen.owners:
            given[f"words{number}"] = salted(OwnerKey(seen.tenant, number), terms)
        each = " OR ".join(_SQL["has_words"].format(words=name) for name in given)
        holds.append(f"({each})")
    holds_part = _SQL["holds"]
    for number, parts in enumerate(wanted):
        names = {f"part{number}_{place}": part for place, part in enumerate(parts)}
        holds.append(f"({' OR '.join(holds_part.format(part=name) for name in names)})")
        given |= names
    sql = _SQL["matching_with_words" if terms else "matching"].format(conditions=" AND ".join(holds))
    return [id_ for (id_,) in connection.execute(sql, seen.params(limit=bounded(limit), **given))]


def _parts(pattern: Pattern) -> list[str]:
    """Return texts of which a memory with the pattern holds one; none for a pattern without words."""
    return [f" {words}" if pattern.is_prefix else f" {words} " for words in readings(pattern.text)]
