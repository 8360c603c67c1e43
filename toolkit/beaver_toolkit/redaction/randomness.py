"""Tells random text from words, by the changes between digits and letters of both cases. Pure."""

import re
import string

_CLASSES = bytes.maketrans(
    (string.digits + string.ascii_uppercase + string.ascii_lowercase).encode(), b"d" * 10 + b"u" * 26 + b"l" * 26
)
_STRETCH = re.compile(rb"d+|u+|l+")
_SIGNS = re.compile(rb"[^0-9A-Za-z]+")
_UNJOINED = re.compile(rb"[^0-9A-Za-z-]+")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")

LONGEST = 256
"""Bytes of a text that are looked at."""

SHORTEST = 12
"""Letters and digits of the shortest text that is taken for random, whatever stands beside it."""

LONGEST_WORD = 20
"""Letters of the longest words."""


def is_random(text: bytes) -> bool:
    """Return whether a text looks as if it were made by a generator."""
    return any(map(_is_mixed, _UNJOINED.split(text[:LONGEST])))


def is_varied(text: bytes) -> bool:
    """Return whether a text may be a key where its name says that it is one."""
    text = text[:LONGEST]
    return _UUID.fullmatch(text) is not None or any(map(_is_no_word, _SIGNS.split(text))) or is_random(text)


def is_long(text: bytes) -> bool:
    """Return whether a text has a stretch without punctuation that is too long for a word."""
    return any(len(piece) >= LONGEST_WORD for piece in _SIGNS.split(text[:LONGEST]))


def _is_mixed(piece: bytes) -> bool:
    """Return whether digits and letters alternate as they do in no word with a number."""
    classes = piece.translate(_CLASSES, b"-")
    length, digits = len(classes), classes.count(b"d")
    if length < SHORTEST or digits == length or not digits:
        return False
    stretches = len(_STRETCH.findall(classes))
    if b"u" in classes and b"l" in classes:
        return stretches >= 0.34 * length
    return digits * 8 >= length and stretches >= 0.18 * length


def _is_no_word(piece: bytes) -> bool:
    """Return whether one piece without punctuation is no word, and no word with a number at its end."""
    classes = piece.translate(_CLASSES)
    length, digits = len(classes), classes.count(b"d")
    stretches = len(_STRETCH.findall(classes))
    if not digits:
        return length >= 16 and stretches >= 0.4 * length  # noqa: PLR2004 - letters of both cases in turn
    if digits == length:
        return False
    return (length >= 8 and digits > 1 and stretches > 3) or (length >= 16 and digits > 3)  # noqa: PLR2004 - as above
