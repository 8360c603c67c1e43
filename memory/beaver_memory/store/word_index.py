"""Removes the words of forgotten memories from the word index."""

import json
from collections.abc import Iterable

import apsw

from beaver_memory.records import Memory

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
_GONE = (
    "SELECT value FROM json_each(?) AS w WHERE NOT EXISTS (SELECT 1 FROM observation_words AS o WHERE o.term = w.value)"
)
SHORTEST = 4
"""Fewer letters than these at the beginning of a word do not identify the word."""


def words_of(connection: apsw.Connection, memory: Memory) -> set[bytes]:
    """Return the words of a memory in the index."""
    tokenize = connection.fts5_tokenizer(*_TOKENIZER)
    texts = (memory.title, memory.narrative, *memory.facts, *memory.tags, *memory.keywords, *memory.related_people)
    # Each token has a tuple of its own.
    tokens = (
        tokenize(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False) for text in texts if text
    )
    return {str(token).encode() for each in tokens for group in each for token in group}


def scrub(connection: apsw.Connection, words: Iterable[bytes]) -> None:
    """Rebuild the word index if it still holds a word that no memory uses any more.

    Deleted words leave the pages of the index, but not the list of where each page begins: that list holds the first
    letters of the word that a page once began with.
    """
    beginnings = {
        word[:end] for word in _gone(connection, words) for end in range(min(SHORTEST, len(word)), len(word) + 1)
    }
    # The first byte is a mark of the index.
    terms = connection.execute("SELECT term FROM observations_fts_idx")
    if beginnings and any(bytes(term)[1:] in beginnings for (term,) in terms):
        connection.execute("INSERT INTO observations_fts (observations_fts) VALUES ('rebuild')")


def _gone(connection: apsw.Connection, words: Iterable[bytes]) -> list[bytes]:
    known = json.dumps([word.decode() for word in words])
    return [word.encode() for (word,) in connection.execute(_GONE, (known,))]
