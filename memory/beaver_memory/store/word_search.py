"""The plain word search, for searches without an index of the engine."""

from collections.abc import Mapping, Sequence

import apsw

from beaver_memory.filters import Filters
from beaver_memory.records import Owner
from beaver_memory.store.queries import sqlite_queries
from beaver_memory.store.reads import bounded
from beaver_memory.store.sql_filters import conditions, marks
from beaver_memory.texts import cleaned

_SQL = sqlite_queries("word_search")

MOST_TERMS = 64
LONGEST_TERM = 256


def word_query(terms: Sequence[str]) -> str:
    """Return an FTS5 query for texts with one of the terms, whatever they are; empty if there are none."""
    kept = dict.fromkeys(cleaned(term[:LONGEST_TERM]) for term in terms)
    quoted = ('"' + term.replace('"', '""') + '"' for term in kept if any(map(str.isalnum, term)))
    return " OR ".join(list(quoted)[:MOST_TERMS])


def word_search(
    connection: apsw.Connection, owners: Mapping[int, Owner], filters: Filters, terms: Sequence[str], limit: int
) -> list[tuple[int, float]]:
    """Return ids and scores of visible memories that have one of the terms, best first, then newest first."""
    query = word_query(terms)
    if not query or not owners:
        return []
    which = conditions(filters)
    sql = _SQL["search_words"].format(owners=marks(len(owners)), conditions=which.sql)
    rows = connection.execute(sql, (query, *owners, *which.params, bounded(limit)))
    return [(id_, -score) for id_, score in rows]
