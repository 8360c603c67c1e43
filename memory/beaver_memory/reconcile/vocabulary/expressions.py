"""Regular expressions that are compiled and tried only where they can match.

A vocabulary has hundreds of expressions, and few of them match a statement. The clues of an expression are sets of
texts: every match holds at least one text of each set. A look for them takes a fraction of the time of a search.
`clues.json` lists them by a digest of the expression, and `tools/vocabulary_clues.py` writes that file. An expression
that it does not list is tried on every text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib.resources import files

import attrs
from attrs import field

FILE = "clues.json"

TEXTS = 64
"""Texts whose clues are kept: the parts of a statement or two."""

BEGINNING = 3
"""Characters by which clues are looked up; shorter clues are looked for one by one."""

_LETTERS = {0x130: "i", 0x131: "i", 0x17F: "s"}
"""Letters that an expression without regard to case finds for another one, although they differ in lower case."""

Sets = tuple[frozenset[str], ...]


class Clues:
    """The clues of the expressions of a language. Thread-safe.

    Args:
        of: the sets of each expression by its digest; a set is a text with blanks between the clues.
    """

    def __init__(self, of: Mapping[str, Iterable[str]]) -> None:
        self._of = {digest: tuple(frozenset(texts.split()) for texts in sets) for digest, sets in of.items()}
        each = frozenset(clue for sets in self._of.values() for clues in sets for clue in clues)
        self._short = tuple(clue for clue in each if len(clue) < BEGINNING)
        self._long: dict[str, list[str]] = {}
        for clue in each.difference(self._short):
            self._long.setdefault(clue[:BEGINNING], []).append(clue)
        self._in = lru_cache(maxsize=TEXTS)(self._in_text)

    @classmethod
    def of_language(cls, language: str) -> "Clues":
        """Return the clues of a language."""
        return cls(json.loads(files(__package__).joinpath(FILE).read_text("utf-8"))[language])

    def of_expression(self, pattern: str) -> Sets:
        """Return the clues of an expression; none if they are not known."""
        return self._of.get(digest_of(pattern), ())

    def allow(self, sets: Sets, text: str) -> bool:
        """Return whether a text holds one clue of each set, so that it may hold a match."""
        found = self._in(text)
        return not any(clues.isdisjoint(found) for clues in sets)

    def _in_text(self, text: str) -> frozenset[str]:
        plain = in_lower_case(text)
        beginnings = {plain[place : place + BEGINNING] for place in range(len(plain) - BEGINNING + 1)}
        found = [clue for clue in self._short if clue in plain]
        for beginning in beginnings & self._long.keys():
            found += [clue for clue in self._long[beginning] if clue in plain]
        return frozenset(found)


@attrs.frozen
class Expression:
    """A regular expression without regard to case.

    Attributes:
        pattern: its text.
        known: the clues of its language.
    """

    pattern: str
    known: Clues = field(repr=False, eq=False)

    @cached_property
    def clues(self) -> Sets:
        """Sets of texts; every match holds one of each set."""
        return self.known.of_expression(self.pattern)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The expression as it searches."""
        return re.compile(self.pattern, re.IGNORECASE)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        return self.compiled.search(text) if self._can_match(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in a text."""
        return self.compiled.finditer(text) if self._can_match(text) else iter(())

    def sub(self, new: str, text: str) -> str:
        """Return a text with a new one in place of each match."""
        return self.compiled.sub(new, text) if self._can_match(text) else text

    def _can_match(self, text: str) -> bool:
        return self.known.allow(self.clues, text)


def digest_of(pattern: str) -> str:
    """Return the digest by which the clues of an expression are listed."""
    return blake2b(pattern.encode(), digest_size=8).hexdigest()


def in_lower_case(text: str) -> str:
    """Return a text in lower case: it holds each clue that an expression without regard to case finds in it."""
    return text.lower() if text.isascii() else text.translate(_LETTERS).lower()
