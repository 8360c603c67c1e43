"""Keeps the word index: adds memories to it, takes them out, and removes the words of forgotten memories from it."""

import json
from collections.abc import Iterable

import apsw

from beaver_memory.records import Memory
from beaver_memory.store.sqlite.queries import sqlite_queries

_SQL = sqlite_queries("word_index")

AT_ONCE = 5_000
"""Memories that the word index takes in one transaction; other writers may follow it."""

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
SHORTEST = 4
"""Fewer letters than these at the beginning of a word do not identify the word."""


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
