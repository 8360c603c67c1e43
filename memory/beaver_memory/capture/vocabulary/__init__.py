"""The words of each language by which rules find statements worth keeping: one module per language."""

import re

from beaver_memory.capture.vocabulary.chinese import CHINESE
from beaver_memory.capture.vocabulary.english import ENGLISH
from beaver_memory.capture.vocabulary.german import GERMAN
from beaver_memory.capture.vocabulary.record import Vocabulary

__all__ = ["CHINESE", "ENGLISH", "GERMAN", "Vocabulary", "vocabulary_of"]

_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

_MOST = 4_000
"""Characters of a text that tell its language."""

_LEAST_CHINESE = 0.3
"""The share of Chinese characters among the letters of a Chinese text."""


def vocabulary_of(text: str) -> Vocabulary:
    """Return the vocabulary of a text's language; English unless the text is plainly another one."""
    text = text[:_MOST]
    ideographs = 0 if text.isascii() else len(_IDEOGRAPH.findall(text))
    if ideographs and ideographs > _LEAST_CHINESE * sum(map(str.isalpha, text)):
        return CHINESE
    words = [word.casefold() for word in ENGLISH.word.findall(text)]
    german = sum(word in GERMAN.common for word in words)
    return GERMAN if german > sum(word in ENGLISH.common for word in words) else ENGLISH
