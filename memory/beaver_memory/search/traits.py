"""Traits of a passage, which tell what it can answer whatever its words are: 16 bits, made when a memory is written.

A statement of many words answers more than a greeting or a question does, and a question for a time is answered by a
passage that names one. Words are those of `trait_words.py` and `trait_words.toml`.
"""

import re
from collections.abc import Sequence
from typing import cast

from beaver_memory.search.trait_words import CHINESE, POLITE, YEAR, trait_words
from beaver_toolkit.words import SPACELESS

WORDS = 0x1F
"""Bits of the number of words outside of questions, which is counted up to here."""

SIZE = 5
"""The first bit of the size of the memory; see `traits_of`."""

LARGEST = 0xF

ASKS, FIRST, TIME, NUMBER, RULE = (1 << bit for bit in range(9, 14))
"""The passage ends with a question; speaks of its speaker; names a time; names a number; has a sentence of a rule."""

_KNOWN = 200_000
_LONGEST_KNOWN = 64
"""Characters of the longest cached word."""

_FLAGS = (("first_person", FIRST), ("times", TIME), ("numbers", NUMBER), ("rules", RULE))
_STAMP = re.compile(r"\s*\[[^\]\n]{1,60}\](?=\s)")
"""What a host has put before a text in brackets: mostly its date."""

_SIGNS = " \t\n.,;:!?\"'()[]{}*_`~<>|\u2026\u201c\u201d\u201e\u2018\u2019\u3002\uff0c\uff01\uff1f"
_CLOSING = "\"')]*_`\u201c\u201d\u2019"
_ENDS = (".", "!", "?", ":")
_DIGIT = re.compile(r"\d")
_UNSPACED = re.compile(f"[{SPACELESS}]")
_SENTENCE = re.compile("(?<=[\u3002\uff01\uff1f])")


class TraitReader:
    """Finds the traits of passages. Thread-safe; caches what words tell."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def traits_of(self, text: str, pieces: Sequence[str], passages: int = 1) -> int:
        """Return the traits of a passage.

        Args:
            text: the passage.
            pieces: its pieces between white space.
            passages: the number of passages of its memory; the traits hold its binary logarithm.
        """
        stamp, text = stamped(text)
        if stamp:
            pieces = pieces[len(stamp.split()) :]
        marks = self._marks(pieces)
        flags = 0
        for mark in set(marks):
            flags |= mark
        if flags & RULE and not _states_rule(pieces, marks):
            flags &= ~RULE
        words = _stated(pieces) if "?" in text else len(pieces)
        if not text.isascii() and _UNSPACED.search(text):
            words += _unspaced(text)
            flags |= _flags_of_unspaced(text)
        if text.rstrip(_CLOSING + " \n").endswith(("?", "\uff1f")):
            flags |= ASKS
        size = min(max(1, passages).bit_length() - 1, LARGEST)
        return min(words, WORDS) | size << SIZE | flags

    def _marks(self, pieces: Sequence[str]) -> list[int]:
        found = list(map(self._known.get, pieces))
        if None in found:
            return [self._learn(piece) if mark is None else mark for piece, mark in zip(pieces, found, strict=True)]
        return cast("list[int]", found)

    def _learn(self, piece: str) -> int:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        mark = _mark(piece)
        if len(piece) <= _LONGEST_KNOWN:
            self._known[piece] = mark
        return mark


def stamped(text: str) -> tuple[str, str]:
    """Return what a host has put before a text in brackets, and the text."""
    found = _STAMP.match(text)
    return (found[0], text[found.end() :]) if found else ("", text)


def _mark(piece: str) -> int:
    """Return the flags of a piece between white space."""
    word, words = _bare(piece), trait_words()
    mark = sum(flag for name, flag in _FLAGS if word in words[name])
    if _DIGIT.search(word):
        mark |= NUMBER
        if YEAR.fullmatch(word):
            mark |= TIME
    return mark


def _bare(piece: str) -> str:
    """Return the word of a piece in small letters."""
    return piece.strip(_SIGNS).replace("\u2019", "'").casefold()


def _states_rule(pieces: Sequence[str], marks: Sequence[int]) -> bool:
    """Return whether a sentence begins with the word of a rule, or is a request with one."""
    first = 0
    for place, mark in enumerate(marks):
        if place and pieces[place - 1].rstrip(_CLOSING).endswith(_ENDS):
            first = place
        if mark & RULE and (place == first or _is_request(pieces[first : first + 2])):
            return True
    return False


def _is_request(begin: Sequence[str]) -> bool:
    """Return whether a sentence with these first words is a request."""
    return _bare(begin[0]) in trait_words()["requests"] or (_bare(begin[-1]) == POLITE and begin[-1].istitle())


def _stated(pieces: Sequence[str]) -> int:
    """Return the number of words in sentences that are no questions."""
    stated = sentence = 0
    for piece in pieces:
        sentence += 1
        bare = piece.rstrip(_CLOSING)
        if bare.endswith(_ENDS):
            stated += 0 if bare.endswith("?") else sentence
            sentence = 0
    return stated + sentence


def _unspaced(text: str) -> int:
    """Return the number of words, of two characters each, in sentences of a script without spaces."""
    return sum(len(_UNSPACED.findall(each)) for each in _SENTENCE.split(text) if not each.endswith("\uff1f")) // 2


def _flags_of_unspaced(text: str) -> int:
    flags = {"first": FIRST, "time": TIME, "number": NUMBER, "rule": RULE}
    return sum(flag for name, flag in flags.items() if CHINESE[name].search(text))
