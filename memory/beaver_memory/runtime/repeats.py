"""Finds statements that say the same in nearly the same words. Pure."""

from typing import Self

import attrs

from beaver_memory.records import Memory
from beaver_memory.search.select import words

SAME = 0.85
"""The share of the words of a statement that another one must have."""

AS_LONG = 0.5
"""The least length of the shorter statement beside the longer one: a long text has any few words by chance."""

READ = 4_000
"""Characters that are compared."""

_DENIALS = frozenset("not no never without nicht nie nein kein keine keinen ohne 不 没 無 无 别".split())  # noqa: SIM905


@attrs.frozen(kw_only=True)
class Statement:
    """A memory as it is compared.

    Attributes:
        words: its words; see `words_of`.
        facts: its numbers and denials, which change its meaning.
    """

    words: frozenset[str]
    facts: frozenset[str]

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return the statement of a memory."""
        found = words_of(memory.text[:READ])
        return cls(words=found, facts=frozenset(each for each in found if each in _DENIALS or _has_digit(each)))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, regardless of case; of a text without spaces, as Chinese, its pairs of characters."""
    found = words(text)
    return found if text.isascii() else frozenset(piece for word in found for piece in _pieces(word))


def says_the_same(one: Statement, other: Statement) -> bool:
    """Return whether a statement adds nothing to another one of about its length or more."""
    if one.facts != other.facts or len(one.words) < AS_LONG * len(other.words):
        return False
    return len(one.words & other.words) >= SAME * max(1, len(one.words))


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _pieces(word: str) -> list[str]:
    if all(ord(each) < _IDEOGRAPHS for each in word):
        return [word]
    return [each for each in word if each in _DENIALS] + [
        word[place : place + 2] for place in range(max(1, len(word) - 1))
    ]


_IDEOGRAPHS = 0x2E80
"""The first character of the scripts that are written without spaces."""
