"""Finds statements that another one contains, so that they add nothing to it. Pure."""

import re
from typing import Self

import attrs

from beaver_toolkit.words import SPACELESS

AS_LONG = 0.5
"""The least length of the contained statement: a long text has any few words by chance."""

READ = 4_000
"""Characters that are split into words; what follows counts as one word."""

_WORD = re.compile(rf"[{SPACELESS}]|[^\s{SPACELESS}]+")
_MARKS = ".,:;!?\"'()[]{}*_`~\u2013\u2014\u2026\u2018\u201c\u201d\u201e\u3001\u3002-"
_MARKS += "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"

_IDLE = frozenset(
    """
    a an the that now also really very der die das dem den des ein eine einem einen einer dass jetzt auch sehr
    的 了 也 很
    """.split()  # noqa: SIM905 - words are read better as words
)
"""Words that a statement may have more than another one."""

_TURNS = frozenset(
    """
    not no never without cannot neither nor nobody nothing none hardly rarely if unless except only stopped
    nicht nie niemals nein kein keine keinem keinen keiner ohne weder nichts niemand kaum wenn falls ausser nur
    不 没 沒 無 无 别 別 未 非 只 若
    """.split()  # noqa: SIM905 - words are read better as words
)
"""Words that turn the meaning of the words beside them: denials and conditions."""


@attrs.frozen(kw_only=True)
class Statement:
    """A text as it is compared.

    Attributes:
        words: its words in order, without those that say nothing; of a text without spaces, as Chinese, its characters.
        turns: those that turn its meaning.
    """

    words: tuple[str, ...]
    turns: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the statement of a text, regardless of case."""
        plain = text[:READ].casefold().replace("\u2019", "'")
        split = (found.strip(_MARKS) for found in (plain.split() if plain.isascii() else _WORD.findall(plain)))
        words = tuple(word for word in (*split, text[READ:]) if word and word not in _IDLE)
        return cls(words=words, turns=tuple(word for word in words if word in _TURNS or word.endswith("n't")))

    def is_in(self, other: "Statement", *, share: float = AS_LONG) -> bool:
        """Return whether another statement has all words of this one in the same order, and the same denials.

        Args:
            other: the other statement.
            share: the least length of this one, as a share of that of the other one.
        """
        if self.turns != other.turns or not share * len(other.words) <= len(self.words) <= len(other.words):
            return False
        rest = iter(other.words)
        return all(word in rest for word in self.words)
