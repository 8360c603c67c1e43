"""Turns texts into terms, and packs the terms of a memory. Pure.

A term is a stem without case and accents, and is kept as 64 bits of its hash. Words of any script are found as they
are; what is written without spaces (Chinese, Japanese, Korean, Thai) is found by its characters and pairs of them. A
code identifier is found whole and by its parts. Words that are in every text are no terms.

A long text is several passages, each of which is found and scored by itself. Packed:

    u16 number of passages, then for each of them: u32 number of terms n, u32 length, n u64 hashes, n u8 counts
"""

import re
import struct
import sys
import threading
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import cast

import attrs
import numpy as np
import Stemmer

ANALYSER = "2"
"""The version of what is done here. Terms that another one packed are not to be mixed with these."""

PASSAGE = 900
"""Characters of a passage, more or less: longer texts are cut between sentences where that can be done."""

MOST_PASSAGES = 1_200
MOST_QUERY = 4_000
"""Characters of a query that are read."""

MOST_QUERY_TERMS = 64
_KNOWN = 200_000
"""Words whose terms are remembered."""

_LONGEST = 64
_MOST_COUNT = 255
_WORD = re.compile(r"[^\W_]+(?:_+[^\W_]+)*(?:['\u2019][^\W\d_]{1,3}\b)?|[\u2190-\u2bff\U0001f000-\U0001faff]")
"""A word, or a symbol."""

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)*(?:'[A-Za-z]{1,3}\b)?")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")
_CLITIC = re.compile(r"(?:n['\u2019]t|['\u2019][^\W\d_]{1,3})$")
_UNSPACED = re.compile(
    "([\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]+)"
)
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f\n])\s+|\n+")

STOP_WORDS = frozenset(
    """
    a about am an and any are as at be been being both but by can could did do does doing each few for from had has
    have having he her hers him his how i if in into is it its just me more most my of on or other our ours own same
    she should so some such than that the their theirs them then there these they this those to too very was we were
    what when where which who whom whose why will with would you your yours
    """.split()  # noqa: SIM905 - words are read better as words
)

_HEAD = struct.Struct("<H")
_PASSAGE_HEAD = struct.Struct("<II")


@attrs.frozen(kw_only=True)
class Passage:
    """The terms of one passage: hashes and how often each occurs."""

    hashes: np.ndarray
    counts: np.ndarray
    length: int


class Analyser:
    """Finds the terms of texts. Thread-safe; remembers the words it has seen."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...]] = {}
        self._names: dict[str, int] = {}
        self._local = threading.local()

    def terms(self, text: str) -> list[int]:
        """Return the terms of a text in order, as hashes."""
        words = _words(text)
        found = list(map(self._known.get, words))
        if None in found:
            found = [self._learn(word) if terms is None else terms for word, terms in zip(words, found, strict=True)]
        return list(chain.from_iterable(cast("list[tuple[int, ...]]", found)))

    def query(self, text: str) -> list[int]:
        """Return the distinct terms of a query, in order, not too many of them."""
        return list(dict.fromkeys(self.terms(text[:MOST_QUERY])))[:MOST_QUERY_TERMS]

    def words(self, text: str) -> list[str]:
        """Return the distinct words of a query that are no stop-words, as they stand."""
        found = _words(text[:MOST_QUERY])
        return [word for word in dict.fromkeys(found) if self._known.get(word) or self._learn(word)][:MOST_QUERY_TERMS]

    def names(self, text: str) -> list[int]:
        """Return what each word of a query would be as a name."""
        words = dict.fromkeys(_words(text[:MOST_QUERY]))
        return list(dict.fromkeys(map(self._name, words)))

    def pack(self, texts: Sequence[str], extra: str = "") -> tuple[bytes, int]:
        """Return the packed terms of passages and their length in all; the first passage has `extra`'s terms too."""
        parts, length = [_HEAD.pack(len(texts))], 0
        for number, text in enumerate(texts):
            found = self.terms(text)
            length += (size := len(found))
            counted = Counter(found)
            if extra and not number:
                counted.update(self.terms(extra))
            parts += (_PASSAGE_HEAD.pack(len(counted), size), _hashes(counted), _counts(counted))
        return b"".join(parts), length

    def _name(self, word: str) -> int:
        known = self._names.get(word)
        if known is None:
            if len(self._names) >= _KNOWN:
                self._names.clear()
            known = self._names[word] = name_hash(word)
        return known

    def _learn(self, word: str) -> tuple[int, ...]:
        terms = tuple(dict.fromkeys(hash_of(term) for term in self._terms_of(word)))
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[word] = terms
        return terms

    def _terms_of(self, word: str) -> Iterator[str]:
        for run in _UNSPACED.split(word):
            if not run:
                continue
            if _UNSPACED.fullmatch(run):
                yield from run
                yield from (run[place : place + 2] for place in range(len(run) - 1))
            else:
                yield from self._spaced(run)

    def _spaced(self, word: str) -> Iterator[str]:
        whole = folded(word)
        bare = _CLITIC.sub("", whole)
        if bare in STOP_WORDS or whole in STOP_WORDS or not bare:
            return
        yield self._stem(bare)[:_LONGEST]
        parts = _PARTS.findall(word)
        if len(parts) > 1 and ("_" in word or not (word.islower() or word[1:].islower())):
            yield from (self._stem(part) for part in map(folded, parts) if part not in STOP_WORDS)

    def _stem(self, word: str) -> str:
        # A stemmer is not thread-safe.
        stemmer = getattr(self._local, "stemmer", None)
        if stemmer is None:
            stemmer = self._local.stemmer = Stemmer.Stemmer("english", 0)
        return stemmer.stemWord(word) if word.isalpha() and len(word) < _LONGEST else word


def _words(text: str) -> list[str]:
    """Return the words of a text; an accent that is a character of its own does not cut one in two."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return _WORD.findall(unicodedata.normalize("NFC", text))


def _hashes(counted: Counter[int]) -> bytes:
    hashes = array("Q", counted)
    if sys.byteorder == "big":
        hashes.byteswap()
    return hashes.tobytes()


def _counts(counted: Counter[int]) -> bytes:
    counts = counted.values()
    return bytes(counts) if max(counts, default=0) <= _MOST_COUNT else bytes(min(each, _MOST_COUNT) for each in counts)


def folded(text: str) -> str:
    """Return a text without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


def hash_of(term: str) -> int:
    """Return the 64 bits that stand for a term or a label."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def name_hash(name: str) -> int:
    """Return what stands for somebody in an index: the first word of a name, as others would say it."""
    found = _WORD.search(name)
    return hash_of(_CLITIC.sub("", folded(found[0]))) if found else 0


def passages(text: str) -> list[str]:
    """Return a text in passages: whole if it is short, else cut between sentences, at words, or anywhere."""
    if len(text) <= PASSAGE + PASSAGE // 2:
        return [text]
    found: list[str] = []
    for piece in _pieces(text):
        if found and len(found[-1]) + len(piece) < PASSAGE:
            found[-1] += " " + piece
        else:
            found.append(piece)
    return found[:MOST_PASSAGES]


def _pieces(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        rest = sentence.strip()
        while len(rest) > PASSAGE:
            cut = rest.rfind(" ", PASSAGE // 2, PASSAGE)
            cut = PASSAGE if cut < 0 else cut
            yield rest[:cut]
            rest = rest[cut:].strip()
        if rest:
            yield rest


def unpack(packed: bytes) -> list[Passage]:
    """Return the passages that `pack` was given.

    Raises:
        ValueError: it was packed by nobody.
    """
    try:
        (number,) = _HEAD.unpack_from(packed)
        place, found = _HEAD.size, []
        for _ in range(number):
            size, length = _PASSAGE_HEAD.unpack_from(packed, place)
            place += _PASSAGE_HEAD.size
            hashes = np.frombuffer(packed, "<u8", size, place)
            place += 8 * size
            found.append(Passage(hashes=hashes, counts=np.frombuffer(packed, "u1", size, place), length=length))
            place += size
    except struct.error as error:
        raise ValueError("no packed terms") from error
    return found


def label_hashes(labels: Iterable[str]) -> list[int]:
    """Return what stands for labels in an index."""
    return [hash_of(f"\0{label}") for label in labels]
