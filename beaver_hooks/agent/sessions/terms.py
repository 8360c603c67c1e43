"""The split of texts into terms, the same for stored messages and for queries. Pure.

Text is folded (compatibility forms, case, accents). A run of letters and digits is one term. Scripts without spaces,
and Hangul with its endings, have no words to split at: there every character is a term, and every pair of neighbours
is one. A symbol such as an emoji is a term by itself.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from beaver_toolkit.words import HANGUL, INDIC, LONGEST, SPACELESS, SYMBOLS, pairs

_STOP_WORDS = """
a about after all also am an and any are as at be because been before being but by can could did do does doing
for from had has have having he her here hers him his how i if in into is it its just me more most my no nor not
of off on once only or other our ours out over own same she should so some such than that the their theirs them
then there these they this those through to too under until up us very was we were what when where which while
who whom why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_UNSPACED = SPACELESS + HANGUL
# The vowel signs of the scripts of India are no letters for `\w`, and belong to their words.
_LETTER = rf"[^\W_]|[{INDIC}]"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"([{_UNSPACED}]+)|((?:(?![{_UNSPACED}])(?:{_LETTER}))+)|([{SYMBOLS}])")


def terms(text: str) -> Iterator[str]:
    """Yield the terms to index for a text."""
    for run, word, symbol in _pattern().findall(fold(text)):
        if run:
            yield from run
            yield from pairs(run)
        else:
            yield (word or symbol)[:LONGEST]


def query_terms(text: str, most: int) -> list[str]:
    """Return the terms to search for, each once: the first `most`, without stop-words unless all are stop-words.

    Several adjacent characters of a script without spaces are searched as pairs, which are more specific.
    """
    found = dict.fromkeys(_asked(text))
    wanted = [term for term in found if term not in STOP_WORDS] or [*found]
    return wanted[:most]


def fold(text: str) -> str:
    """Return a text in the form for comparison."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    # Only the accents of the European scripts: other scripts write vowels with marks.
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", decomposed))


def _asked(text: str) -> Iterator[str]:
    for run, word, symbol in _pattern().findall(fold(text)):
        if len(run) > 1:
            yield from pairs(run)
        else:
            yield (run or word or symbol)[:LONGEST]
