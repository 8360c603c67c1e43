"""Ranks the memories that a store found by text: for phrases and prefixes, and while no index can be built. Pure.

Only memories that the caller may see are counted, so the rarity of a word reveals nothing about other memories.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from beaver_memory.patterns import Pattern, words_in
from beaver_memory.records import Memory
from beaver_memory.search.select import Choice
from beaver_memory.texts import folded
from beaver_toolkit.words import LONGEST

MOST = 2_000
"""Memories that are ranked, the newest first."""

MOST_COMPARED = 20_000
"""Memories whose texts are compared with the patterns."""

_SHORTEST = 4
"""Letters of a word that is not the end of a contraction."""

_CONTRACTED = frozenset(
    """
    aren couldn daren didn doesn hadn hasn haven mayn mightn mustn needn oughtn shan shouldn wasn weren wouldn
    """.split()  # noqa: SIM905 - words are read better as words
)

_GAP = "\0"


def holds(memory: Memory, patterns: Iterable[Pattern]) -> bool:
    """Return whether a memory holds all patterns, each within one text."""
    lists = (memory.facts, memory.tags, memory.keywords, memory.related_people)
    text = _spaced(memory.title, memory.narrative, *(each for texts in lists for each in texts))
    return all(_key(pattern) in text for pattern in patterns if words_in(folded(pattern.text)))


def sure_terms(patterns: Iterable[Pattern], terms_of: Callable[[str], Collection[int]]) -> list[int]:
    """Return terms that nearly every memory with the patterns has.

    Words of other letters, parts of contractions and the last word of a prefix have other terms in some texts. The
    others differ only within identifiers such as `max_retryCount`.
    """
    found: dict[int, None] = {}
    for pattern in patterns:
        words = words_in(folded(pattern.text))
        for word in words[:-1] if pattern.is_prefix else words:
            if word.isascii() and word.isalpha() and _SHORTEST <= len(word) <= LONGEST and word not in _CONTRACTED:
                found |= dict.fromkeys(terms_of(word))
    return list(found)


def ranked(
    memories: Sequence[Memory],
    patterns: Sequence[Pattern],
    terms: Sequence[int],
    terms_of: Callable[[str], Collection[int]],
) -> tuple[list[Choice], Mapping[str, np.ndarray]]:
    """Return memories that hold all patterns, best first, and the share of each signal in their scores.

    A pattern counts 1. A term counts less the more of the memories have it. Of equal memories the newest comes first.

    Args:
        memories: the memories.
        patterns: the patterns.
        terms: the terms of the plain words.
        terms_of: returns the terms of a text.
    """
    newest = sorted(memories, key=lambda each: (each.created_at, each.id), reverse=True)
    has = np.zeros((len(newest), len(terms)))
    for row, memory in enumerate(newest):
        known = set(terms_of("\n".join((memory.text, *memory.tags, *memory.keywords, *memory.related_people))))
        has[row] = [term in known for term in terms]
    weights = 1 - has.sum(axis=0) / (len(newest) + 1)
    whole = max(len(patterns) + weights.sum(), 1e-9)
    kinds = [pattern.kind for pattern in patterns]
    shares = {kind: np.full(len(newest), kinds.count(kind) / whole) for kind in dict.fromkeys(kinds)}
    shares["lexical"] = has @ weights / whole
    scores = np.sum(list(shares.values()), axis=0)
    order = np.argsort(-scores, kind="stable").tolist()
    return [Choice(id=newest[place].id, score=float(scores[place]), place=place) for place in order], shares


def _spaced(*texts: str) -> str:
    """Return the words of texts with a gap around each, and a wider one between the texts."""
    return _GAP.join(f"{_GAP}{_GAP.join(words_in(folded(text)))}{_GAP}" for text in texts)


def _key(pattern: Pattern) -> str:
    words = _GAP.join(words_in(folded(pattern.text)))
    return f"{_GAP}{words}" if pattern.is_prefix else f"{_GAP}{words}{_GAP}"
