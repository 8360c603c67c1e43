"""Cleans the reports of plugins: numbers, codes and ids stay, any other text becomes a keyed hash and a length.

A code is a word of at most 64 characters, without spaces, so no sentence is a code. A code that contains a known
secret, the whole prompt or an id of a person is replaced as well.
"""

import re
from collections.abc import Callable, Mapping
from math import isfinite

import attrs

from beaver_hostspecs import Fact, Personal, Turn, holds_secret
from beaver_hostspecs.naming import type_name

MOST_ITEMS = 50
"""Items of a list fact, and facts of an event."""

HORIZON = 20_000
"""Characters of a text that its keyed hash covers; the time to hash a longer text has no limit."""

_CODE = re.compile(r"[A-Za-z0-9_.:/+-]{0,64}")
_INTEGERS = (-(2**63), 2**63 - 1)
"""The integers that every sink can store; the time to print a larger number has no limit."""

_SHORTEST_PART, _SHORTEST_WORD = 6, 3
"""Letters from which an id is found within a code, and as a word of a code: `u1` could be anything."""

Identify = Callable[[str], str]
"""Returns the keyed hash of a value."""


def private_words(turn: Turn, recorded: str) -> frozenset[str]:
    """Return the prompt and the ids of a turn that no code may contain, as letters; `recorded` is its recorded id."""
    actors, other = turn.actors, turn.id if turn.id != recorded else None
    named = (turn.prompt, turn.session, turn.conversation, turn.user, actors.speaker, actors.subject, other)
    return frozenset({_letters(each[:HORIZON]) for each in named if each} - {""})


@attrs.frozen
class Cleaner:
    """Brings the reports of one turn, or of no turn, into the form that may be recorded.

    Attributes:
        identify: returns the keyed hash of a value.
        private: the letters of texts that no code may contain.
    """

    identify: Identify
    private: frozenset[str] = frozenset()

    def facts(self, facts: Mapping[str, object]) -> dict[str, Fact | list[Fact]]:
        """Return facts: flat, few and content-free."""
        return {self.name(key): self._fact(value) for key, value in list(facts.items())[:MOST_ITEMS]}

    def name(self, name: str) -> str:
        """Return the name of an event or a fact in a form that fits every log format and every query."""
        return re.sub(r"\W", "_", self.code(name)) or "_"

    def code(self, text: str) -> str:
        """Return a code or an id as it is, and any other text as its keyed hash and its length."""
        plain = str.__str__(text)
        is_code = _CODE.fullmatch(plain) and not self._is_private(plain) and not holds_secret(plain)
        return plain if is_code else self._pseudonym(plain)

    def _fact(self, value: object) -> Fact | list[Fact]:
        if isinstance(value, list | tuple | set | frozenset):
            return [self._item(item) for item in list(value)[:MOST_ITEMS]]
        return self._item(value)

    def _item(self, value: object) -> Fact:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return _number(value)
        if isinstance(value, Personal):
            return self._pseudonym(value.value)
        return self.code(value if isinstance(value, str) else type_name(value))

    def _is_private(self, code: str) -> bool:
        letters, words = _letters(code), re.split(r"[\W_]+", code.casefold())
        return any(
            each == letters
            or (len(each) >= _SHORTEST_WORD and each in words)
            or (len(each) >= _SHORTEST_PART and each in letters)
            for each in self.private
        )

    def _pseudonym(self, value: str) -> str:
        return f"{self.identify(value[:HORIZON])}/{len(value)}"


def _number(value: float) -> Fact:
    # A subclass, an enum for example, may print as anything; keep the plain number.
    if isinstance(value, int):
        plain = int.__int__(value)
        return plain if _INTEGERS[0] <= plain <= _INTEGERS[1] else "int"
    number = float.__float__(value)
    return number if isfinite(number) else str(number)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
