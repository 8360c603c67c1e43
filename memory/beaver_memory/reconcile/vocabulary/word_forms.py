"""Splits texts into words, each in one form. Pure."""

import re
from collections.abc import Collection
from functools import cache, lru_cache
from itertools import pairwise

_ENGLISH = re.compile(r"[^\W_]+(?:[.:@/_-][^\W_]+|(?<=\d),\d{3})*(?:['\u2019][a-z]{1,2}\b)?")
_CLITIC = re.compile(r"(?:n['\u2019]t|['\u2019][a-z]{1,2})$")
_GERMAN = re.compile(r"[^\W_]+(?:[.:@/_-][^\W_]+)*")
_PARTS = re.compile(r"[a-z0-9][\w.@:+-]*|[\u3400-\u9fff]+", re.ASCII)
_CHINESE = re.compile(r"[a-z0-9][\w.@:+-]*|[\u3400-\u9fff]", re.ASCII)
_GERMAN_ENDINGS = ("en", "em", "er", "es", "e", "n", "s")
_SHORTEST = 3
"""Characters that a word keeps; German words one more, except before an `s`."""

_ENGLISH_ENDINGS = (("ing", 3, ""), ("ies", 2, "y"), ("ed", 3, ""), ("s", 3, ""))
"""Endings of English words, the fewest characters before each, and the text in place of it."""


KEPT = 8_192
"""Words whose forms are kept for a language."""

_DOUBLED = re.compile(r"([bdgmnprt])\1$")
"""Letters that are written twice before an ending."""


def english_words(text: str, _: Collection[str] = ()) -> list[str]:
    """Return the words of an English text without their endings."""
    bare = (_CLITIC.sub("", word) for word in _ENGLISH.findall(text.casefold()))
    return [_english(word) for word in bare]


def german_words(text: str, idle: Collection[str] = ()) -> list[str]:
    """Return the words of a German text without their endings."""
    return [_german(word) for word in _GERMAN.findall(text.casefold()) if word not in idle]


def characters(text: str, idle: Collection[str] = ()) -> list[str]:
    """Return the characters of a Chinese text, and its words in other scripts; idle words are left out."""
    return _CHINESE.findall(_any_of(frozenset(idle)).sub(" ", text.casefold()))


def pairs_of(text: str, idle: Collection[str]) -> list[str]:
    """Return each two neighbouring characters of a Chinese text, and its words in other scripts; idle words part it."""
    parts = _PARTS.findall(_any_of(frozenset(idle)).sub(" ", text.casefold()))
    return [pair for part in parts for pair in ([part] if part.isascii() else map("".join, pairwise(part)))]


@cache
def _any_of(words: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)) or "(?!)")


@lru_cache(maxsize=KEPT)
def _english(word: str) -> str:
    for ending, before, instead in _ENGLISH_ENDINGS:
        if word.endswith(ending) and len(word) >= before + len(ending) and not word.endswith(("ss", "us", "is")):
            word = _DOUBLED.sub(r"\1", word.removesuffix(ending)) + instead
            break
    return word.removesuffix("e") if len(word) > _SHORTEST + 1 else word


@lru_cache(maxsize=KEPT)
def _german(word: str) -> str:
    for ending in _GERMAN_ENDINGS:
        shortest = _SHORTEST if ending == "s" else _SHORTEST + 1
        if len(word) >= len(ending) + shortest and word.endswith(ending) and word.isalpha():
            return word.removesuffix(ending)
    return word
