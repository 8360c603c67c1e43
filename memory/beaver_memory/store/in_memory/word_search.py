"""The search for phrases and prefixes in the texts of memories.

A text is read in two ways: without accents and compatibility forms, as the caller compares it, and as it is written. A
memory that holds a pattern in one of them is found.
"""

import re
from collections.abc import Callable, Sequence

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern, words_in
from beaver_memory.records import Memory
from beaver_memory.store.bounds import bounded
from beaver_memory.store.in_memory.reads import age, everything
from beaver_memory.store.in_memory.tables import Database
from beaver_memory.texts import folded

_WRITTEN = re.compile(r"\w+")
_GAP = "\0"

_READINGS: tuple[Callable[[str], list[str]], ...] = (
    lambda text: words_in(folded(text)),
    lambda text: _WRITTEN.findall(text.casefold()),
)


def matching(database: Database, patterns: Sequence[Pattern], filters: Filters, limit: int) -> list[int]:
    """Return ids of visible memories that hold all patterns, newest first."""
    if not patterns or not all(pattern.words for pattern in patterns):
        return []
    found = [row.memory for row in everything(database, filters) if _holds(row.memory, patterns)]
    return [memory.id for memory in sorted(found, key=age, reverse=True)][: bounded(limit)]


def _holds(memory: Memory, patterns: Sequence[Pattern]) -> bool:
    lists = (memory.facts, memory.tags, memory.keywords, memory.related_people)
    texts = (memory.title, memory.narrative, *(each for texts in lists for each in texts))
    return all(any(_reads(text, pattern) for text in texts) for pattern in patterns)


def _reads(text: str, pattern: Pattern) -> bool:
    return any(_begun(read(text), read(pattern.text), is_prefix=pattern.is_prefix) for read in _READINGS)


def _begun(words: Sequence[str], wanted: Sequence[str], *, is_prefix: bool) -> bool:
    """Return whether words hold the wanted ones, one after the other; the last one may be a prefix."""
    end = "" if is_prefix else _GAP
    return bool(wanted) and f"{_GAP}{_GAP.join(wanted)}{end}" in f"{_GAP}{_GAP.join(words)}{_GAP}"
