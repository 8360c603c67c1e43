"""Views of an entry, as a reader takes it, that the scan searches. Pure, and linear in the text."""

import re
import unicodedata
from functools import cache

_LATIN_FOR = dict(zip("аеорсухіјѕԁһοαενρτικ", "aeopcyxijsdhoaevptik", strict=True))
_LOOK_ALIKE = re.compile(f"[{''.join(_LATIN_FOR)}]")
_MARKS = "\u0300-\u036f"
_LATIN = re.compile("[a-z]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n\s{0,8}(?=[a-z])")
_LINE_BREAK = re.compile(r"\n[\s>*#\u2022-]{0,8}(?:\d{1,2}[.)]\s)?")
_EMPHASIS = re.compile(r"\*\*|__|~~|`")
_SPACED = re.compile(r"(?<!\w)\w(?:[ ._*-]\w){3,60}(?!\w)")
_GAPS = re.compile(r"[ ._*-]")
_DIGIT_IN_WORD = re.compile(r"[a-z][013457@$]|[013457@$!][a-z]")
_SHOUT_IN_WORD = re.compile(r"!(?=[a-z])")
_DIGITS = str.maketrans("013457@$l", "oieastasi")
"""Digits and signs to read as letters. `1` is `i` and `l`, so `l` becomes `i` too."""


def fold(text: str) -> str:
    """Return `text` without compatibility forms, case and accents."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    # Accents off Latin and Greek letters only: in other scripts marks are vowels. The dotless i has none to lose.
    apart = unicodedata.normalize("NFKD", folded).replace("\u0131", "i")
    return unicodedata.normalize("NFC", _marks().sub("", apart))


def plain(text: str) -> str:
    """Return the text as a reader takes it: folded, and with Latin letters for those that look like them."""
    folded = fold(text)
    if folded.isascii() or not _LOOK_ALIKE.search(folded) or not _is_latin(folded):
        return folded
    return _LOOK_ALIKE.sub(lambda match: _LATIN_FOR[match[0]], folded)


def flat(plain_text: str) -> str | None:
    """Return a plain text with its lines joined, s p a c e d words closed, without emphasis, and digits as letters.

    `None` if that is no other text.
    """
    joined = plain_text.strip()
    if "\n" in joined:
        joined = _LINE_BREAK.sub(" ", _BROKEN_WORD.sub("", f"\n{joined}"))
    closed = _SPACED.sub(_closed, _EMPHASIS.sub("", joined))
    if closed == plain_text.strip() and not _DIGIT_IN_WORD.search(closed):
        return None
    return letters(_SHOUT_IN_WORD.sub("i", closed))


def letters(text: str) -> str:
    """Return a text with letters for the digits and signs that stand for them."""
    return text.translate(_DIGITS)


def _closed(match: re.Match[str]) -> str:
    return _GAPS.sub("", match[0])


def _is_latin(text: str) -> bool:
    latin = len(text) - len(_LATIN.sub("", text))
    return latin * 2 > len(text) - len(_LETTERS.sub("", text))


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(f"(?<=[a-z\u03b1-\u03c9])[{_MARKS}]+")
