"""Finds the words of texts, and the terms of each word. Pure.

The term of an English or German word is its stem, without case and accents; that of an irregular form is the stem of
its base form. Words of any script are terms as they are; text without spaces (Chinese, Japanese, Korean, Thai, Lao,
Burmese, Khmer) gives its characters and pairs of them. A code identifier gives itself and its parts. Words that are in
every text have no term. Only `irregular_forms` reads a file.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.resources import files

from beaver_memory.texts import folded, plain
from beaver_toolkit.words import HANGUL, SIGNS, SPACELESS, SYMBOLS, pairs

_LETTERS = rf"[^\W_](?:[^\W_]|[{SIGNS}])*"
_WORD = re.compile(rf"{_LETTERS}(?:_+{_LETTERS})*(?:['\u2019][^\W\d_]{{1,3}}\b)?|[{SYMBOLS}]")
"""A word, or a symbol."""

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)*(?:'[A-Za-z]{1,3}\b)?")
_PARTS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_CLITIC = re.compile(r"(?:n['\u2019]t|['\u2019][^\W\d_]{1,3})$", re.IGNORECASE)
_UNSPACED = re.compile(f"([{SPACELESS}{HANGUL}]+)")

STOP_WORDS = frozenset(
    """
    a about ain't am an and any are as at be been being both but by can can't could did do does doing each few for from
    had has have having he her hers him his how i if in into is it its just me more most my of on or other our ours own
    same shan't she should so some such than that the their theirs them then there these they this those to too very
    was we were what when where which who whom whose why will with won't would you your yours
    """.split()  # noqa: SIM905 - words are read better as words
)


IDLE_CHARACTERS = frozenset(
    "的了着著过過是在有和与與跟就都也还還又很太吗嗎呢吧啊嘛么麼什甚哪谁誰怎为為因所以我你您他她它们們这這那个個些把被给給对對从從到让讓"
    "会會要能可得地之其"
)
"""Characters of Chinese that are in every text: without a term alone, or two of them together."""


def words_of(text: str) -> list[str]:
    """Return the words of a text; an accent that is a character of its own does not split a word.

    A piece between white space has the same words by itself.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFC", text))


def terms_of(word: str, root: Callable[[str], str], stop_words: Collection[str] = STOP_WORDS) -> Iterable[str]:
    """Return the terms of a word; `root` maps each part in small letters to its stem."""
    if not word.isascii():
        return _runs(word, root, stop_words)
    if word.isalpha() and word.islower():
        return () if word in stop_words else (root(word),)
    return _spaced(word, root, stop_words)


def named(name: str) -> str:
    """Return the first word of a name, as others would say it; an empty text if there is none."""
    found = _WORD.search(name)
    return folded(_CLITIC.sub("", found[0])) if found else ""


def irregular_forms(language: str) -> dict[str, str]:
    """Return the base of each irregular form of a language: `english` or `german`."""
    listed: str = tomllib.loads(files(__package__).joinpath("irregular.toml").read_text("utf-8"))[language]
    entries = (entry.split() for entry in listed.split(";"))
    return {form: base for base, *forms in entries for form in forms}


def _runs(word: str, root: Callable[[str], str], stop_words: Collection[str]) -> Iterator[str]:
    for run in filter(None, _UNSPACED.split(word)):
        if _UNSPACED.fullmatch(run):
            yield from (each for each in (*run, *pairs(run)) if not IDLE_CHARACTERS.issuperset(each))
        else:
            yield from _spaced(run, root, stop_words)


def _spaced(word: str, root: Callable[[str], str], stop_words: Collection[str]) -> Iterator[str]:
    whole = folded(word).replace("\u2019", "'")
    if whole in stop_words:
        return
    word = _CLITIC.sub("", word)
    bare = folded(word)
    if bare in stop_words or not bare:
        return
    yield root(bare)
    if "_" in word or not (word.islower() or word[1:].islower()):
        parts = _PARTS.findall(word if word.isascii() else plain(word))
        if len(parts) > 1:
            yield from (root(part) for part in map(folded, parts) if part not in stop_words)
