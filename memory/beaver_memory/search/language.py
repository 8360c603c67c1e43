"""The languages whose words have stems: how each makes a term of a word. Thread-safe."""

import threading
from collections.abc import Callable, Collection
from typing import cast

import Stemmer

from beaver_memory.search.german import GERMAN_STOP_WORDS, GermanForms, without_tense
from beaver_memory.search.words import STOP_WORDS, irregular_forms
from beaver_toolkit.words import LONGEST


class Language:
    """Makes terms of the words of one language.

    Args:
        algorithm: the stemmer's name.
        stop_words: words without a term.
        base: returns the base form of an irregular form in small letters, or the word.
        shortened: returns a stem without what the stemmer leaves.
    """

    def __init__(
        self,
        algorithm: str,
        stop_words: Collection[str],
        base: Callable[[str], str],
        shortened: Callable[[str], str] = str,
    ) -> None:
        self.stop_words = stop_words
        self._algorithm = algorithm
        self._base = base
        self._shortened = shortened
        self._local = threading.local()

    def root(self, word: str) -> str:
        """Return the stem of a word in small letters, or of the base of an irregular form."""
        if not word.isalpha() or len(word) >= LONGEST:
            return word[:LONGEST]
        # A stemmer is not thread-safe.
        stemmer = getattr(self._local, "stemmer", None)
        if stemmer is None:
            stemmer = self._local.stemmer = Stemmer.Stemmer(self._algorithm, 0)
        return self._shortened(cast("str", stemmer.stemWord(self._base(word))))


def english() -> Language:
    """Return English, which is also the language of a text whose language is unknown."""
    forms = irregular_forms("english")
    return Language("english", STOP_WORDS, lambda word: forms.get(word, word))


def german() -> Language:
    """Return German."""
    return Language("german", GERMAN_STOP_WORDS, GermanForms().base, without_tense)
