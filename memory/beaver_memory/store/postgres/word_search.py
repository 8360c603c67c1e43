"""The search for phrases and prefixes in the folded texts of an owner.

The texts are folded as the caller compares them, so the search finds exactly the memories that hold all patterns.
"""

from collections.abc import Sequence
from typing import Any

from beaver_memory.patterns import Pattern
from beaver_memory.store.bounds import bounded
from beaver_memory.store.postgres.queries import postgres_queries
from beaver_memory.store.postgres.rows import folded_words
from beaver_memory.store.postgres.seen import Seen

_SQL = postgres_queries("word_search")

MOST_PATTERNS = 16
"""Patterns that the store compares; the caller compares all of them."""


def matching(connection: Any, seen: Seen, patterns: Sequence[Pattern], limit: int) -> list[int]:
    """Return ids of visible memories that hold all patterns, newest first."""
    parts = [_part(pattern) for pattern in patterns[:MOST_PATTERNS]]
    if not seen.owners or not parts or not all(parts):
        return []
    holds = {f"part{number}": part for number, part in enumerate(parts)}
    conditions = " AND ".join([seen.which.sql, *(_SQL["holds"].format(part=name) for name in holds)])
    sql = _SQL["matching"].format(conditions=conditions)
    return [id_ for (id_,) in connection.execute(sql, seen.params(limit=bounded(limit), **holds))]


def _part(pattern: Pattern) -> str:
    """Return the text that a memory with the pattern holds; nothing for a pattern without words."""
    words = " ".join(folded_words(pattern.text))
    return words and (f" {words}" if pattern.is_prefix else f" {words} ")
