"""The search for phrases and prefixes in the word index of SQLite (FTS5).

The index holds stems, so it finds other forms of the words too: the caller compares the texts. It stems a prefix as
well, and then misses words: `key*` becomes `kei*`, and `configura*` is longer than `configur`. So words with the first
letters of a prefix, which no stem changes, are searched for too, and come last.
"""

from collections.abc import Sequence
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.store.bounds import bounded
from beaver_memory.store.sqlite.owners import TenantOwners
from beaver_memory.store.sqlite.queries import sqlite_queries
from beaver_memory.store.sqlite.rows import FAILS
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions, marks

_SQL = sqlite_queries("word_search")

MOST_PATTERNS = 16
"""Patterns, and parts of them without spaces, that the store compares; the caller compares all of them."""

MOST_WORDS = 32
"""Words of a pattern that the index compares."""

UNCHANGED = 2
"""First letters of a word that stemming never changes."""


def matching(
    connection: apsw.Connection,
    owners: TenantOwners,
    patterns: Sequence[Pattern],
    filters: Filters,
    limit: int,
) -> list[int]:
    """Return ids of visible memories that may hold all patterns, newest first; less likely ones come last."""
    if not owners or not patterns or not all(pattern.words for pattern in patterns):
        return []
    compared, which = patterns[:MOST_PATTERNS], _conditions(patterns[:MOST_PATTERNS], filters)
    found: dict[int, None] = {}
    for expression in dict.fromkeys((_expression(compared), _expression(compared, wide=True))):
        query = _SQL["matching" if expression else "matching_text"]
        sql = query.format(owners=marks(len(owners.names)), conditions=which.sql, fails=FAILS)
        given = (*([expression] if expression else ()), owners.tenant, *owners.names, *which.params, bounded(limit))
        found |= dict.fromkeys(id_ for (id_,) in connection.execute(sql, given))
    return [*found][: bounded(limit)]


def _conditions(patterns: Sequence[Pattern], filters: Filters) -> Conditions:
    """Return the conditions for a visible memory that holds the parts which the index cannot find."""
    which, parts = conditions(filters), [part for pattern in patterns for part in pattern.unspaced][:MOST_PATTERNS]
    params: tuple[Any, ...] = (*which.params, *parts)
    return Conditions(sql=" AND ".join([which.sql, *(_SQL["holds_text"] for _ in parts)]), params=params)


def _expression(patterns: Sequence[Pattern], *, wide: bool = False) -> str:
    """Return the FTS5 expression for all patterns, without those that the index cannot find."""
    return " AND ".join(_one(pattern, wide=wide) for pattern in patterns if not pattern.unspaced)


def _one(pattern: Pattern, *, wide: bool) -> str:
    words = pattern.words
    # Words have letters and digits only: none of them is FTS5 syntax.
    kept = words[:MOST_WORDS]
    phrase = f'"{" ".join(kept)}"'
    if not pattern.is_prefix or len(kept) < len(words):
        return phrase
    *before, last = kept
    return f'"{" ".join([*before, last[:UNCHANGED]])}" *' if wide else f"{phrase} *"
