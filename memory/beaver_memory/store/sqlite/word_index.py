"""Keeps the word index: adds memories to it, takes them out, and removes the words of forgotten memories from it.

The index (FTS5) holds stems, so `matching` finds other forms of the words too: the caller compares the texts. FTS5
stems a prefix as well, and then misses words: `key*` becomes `kei*`, and `configura*` is longer than `configur`. So
words with the first letters of a prefix, which no stem changes, are searched for too, and come last.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import Memory
from beaver_memory.store.bounds import bounded
from beaver_memory.store.queries import queries_of
from beaver_memory.store.sqlite.owners import TenantOwners
from beaver_memory.store.sqlite.rows import FAILS
from beaver_memory.store.sqlite.sql_filters import Conditions, conditions, marks

_SQL = queries_of("sqlite", "word_index")

AT_ONCE = 5_000
"""Memories that the word index takes in one transaction; other writers may follow it."""

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
SHORTEST = 4
"""Fewer letters than these at the beginning of a word do not identify the word."""

MOST_PATTERNS = 16
"""Patterns, and parts of them without spaces, that the store compares; the caller compares all of them."""

MOST_WORDS = 32
"""Words of a pattern that the index compares."""

UNCHANGED = 2
"""First letters of a word that stemming never changes."""


def last_added(connection: apsw.Connection) -> int:
    """Return the row of the newest memory, 0 if there was none."""
    return int(connection.execute(_SQL["last_added"]).get)


def last_indexed(connection: apsw.Connection) -> int:
    """Return the row of the last memory in the word index."""
    return int(connection.execute(_SQL["last_indexed"]).get)


def index_words(connection: apsw.Connection, upto: int) -> int:
    """Add the next memories to the word index, within one transaction; return the row of the last one."""
    last = last_indexed(connection)
    if last >= upto:
        return last
    new = min(upto, last + AT_ONCE)
    connection.execute(_SQL["set_last_indexed"], (new,))
    connection.execute(_SQL["add_rows"], (last + 1, new))
    return new


def row_of(connection: apsw.Connection, tenant: int, id_: int) -> int:
    """Return the row of a memory of a tenant."""
    return int(connection.execute(_SQL["row_of"], (tenant, id_)).get)


def add_words(connection: apsw.Connection, tenant: int, id_: int) -> None:
    """Put a memory into the word index, unless the index has not reached it yet."""
    connection.execute(_SQL["add_words"], (tenant, id_))


def drop_words(connection: apsw.Connection, tenant: int, id_: int) -> None:
    """Take a memory out of the word index, if it is there; its texts must be those that were put in."""
    connection.execute(_SQL["drop_words"], (tenant, id_))


def is_true(connection: apsw.Connection) -> bool:
    """Return whether the word index holds the words of its memories and no others."""
    try:
        connection.execute(_SQL["compare_words"])
    except apsw.CorruptError:
        return False
    return True


def words_of(connection: apsw.Connection, memory: Memory) -> set[bytes]:
    """Return the words of a memory in the index."""
    tokenize = connection.fts5_tokenizer(*_TOKENIZER)
    texts = (memory.title, memory.narrative, *memory.facts, *memory.tags, *memory.keywords, *memory.related_people)
    # Each token has a tuple of its own.
    tokens = (
        tokenize(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False) for text in texts if text
    )
    return {str(token).encode() for each in tokens for group in each for token in group}


def rebuild_words(connection: apsw.Connection) -> None:
    """Make the word index anew from the memories."""
    connection.execute(_SQL["rebuild_words"])


def scrub(connection: apsw.Connection, words: Iterable[bytes]) -> None:
    """Rebuild the word index if it still holds a word that no memory uses any more.

    Deleted words leave the pages of the index, but not the list of where each page begins: that list holds the first
    letters of the word that a page once began with.
    """
    beginnings = {
        word[:end] for word in _gone(connection, words) for end in range(min(SHORTEST, len(word)), len(word) + 1)
    }
    # The first byte is a mark of the index.
    terms = connection.execute(_SQL["page_beginnings"])
    if beginnings and any(bytes(term)[1:] in beginnings for (term,) in terms):
        connection.execute(_SQL["rebuild_words"])


def _gone(connection: apsw.Connection, words: Iterable[bytes]) -> list[bytes]:
    known = json.dumps([word.decode() for word in words])
    return [word.encode() for (word,) in connection.execute(_SQL["unused_words"], (known,))]


def matching(
    connection: apsw.Connection, owners: TenantOwners, patterns: Sequence[Pattern], filters: Filters, limit: int
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
