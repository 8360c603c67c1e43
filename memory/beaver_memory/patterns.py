"""Finds quoted phrases and `prefix*` in the text of a search. Pure.

Only searches have them: the prompt of a turn is plain words. An unpaired quotation mark, quotes without a word between
them, and a star that stands alone or inside a word stay plain text.
"""

import re
import unicodedata

import attrs
from attrs import field

from beaver_memory.texts import cleaned
from beaver_toolkit.words import SIGNS, SPACELESS, SYMBOLS

_WORD = re.compile(rf"[{SPACELESS}{SYMBOLS}]|(?:(?![{SPACELESS}])[^\W_]|[{SIGNS}])+")
_UNSPACED = re.compile(rf"[{SPACELESS}{SYMBOLS}]+")
_PATTERN = re.compile(
    r'["\u201c\u201d](?P<phrase>[^"\u201c\u201d]*)["\u201c\u201d](?P<open>\*?)|(?<!\S)(?P<prefix>[^\s"*]+)\*(?!\S)'
)


@attrs.frozen(kw_only=True)
class Pattern:
    """Words that a memory must hold one after the other, regardless of case and accents.

    Attributes:
        text: the words.
        is_prefix: whether the last word is a prefix.
    """

    text: str = field(repr=False)
    is_prefix: bool = False

    @property
    def kind(self) -> str:
        """Its name in an explanation: `phrase` or `prefix`."""
        return "prefix" if self.is_prefix else "phrase"

    @property
    def words(self) -> list[str]:
        """Its words, as they are written; of scripts without spaces, the characters."""
        return words_in(self.text)

    @property
    def unspaced(self) -> list[str]:
        """Its parts without spaces between words: runs of Chinese, Japanese, Thai and the like, and of symbols."""
        return _UNSPACED.findall(self.text)


def words_in(text: str) -> list[str]:
    """Return the words of a text, in order; each character of scripts without spaces, and each symbol, is one."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFC", text))


def parsed(text: str) -> tuple[str, tuple[Pattern, ...]]:
    """Return the plain words of a search, and its patterns."""
    found: dict[Pattern, None] = {}

    def plain(match: re.Match[str]) -> str:
        pattern = _pattern(match)
        if pattern is None:
            return match[0]
        found[pattern] = None
        return " "

    rest = _PATTERN.sub(plain, text)
    return (" ".join(rest.split()) if found else text), tuple(found)


def _pattern(match: re.Match[str]) -> Pattern | None:
    """Return the pattern of a match, unless it has no word."""
    phrase = match["phrase"]
    text = cleaned(match["prefix"] if phrase is None else phrase).strip()
    is_prefix = phrase is None or bool(match["open"]) or text.endswith("*")
    return Pattern(text=text.rstrip("*"), is_prefix=is_prefix) if words_in(text) else None
