"""Turns texts into terms, and packs the terms of a memory. Pure.

Searches find a word by its terms, see `words.py`; a term is stored as 64 bits of its hash. A long text is split into
passages, each of which is found and scored by itself. Packed:

    u16 number of passages, then for each of them:
        u32 number of terms n, u16 length, u16 traits (`traits.py`), n u64 hashes, n u8 counts

The dates that a passage names, and the day of its memory, are terms too (`dates.py`); the length does not count them.
"""

import re
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import cast

import attrs
import numpy as np

from beaver_memory.embedding.calibration import TextLanguage
from beaver_memory.search.dates import around, as_date, dates_of
from beaver_memory.search.german import TELLING
from beaver_memory.search.intent import Intent, intent_of
from beaver_memory.search.language import Language, english, german
from beaver_memory.search.traits import FIRST, NUMBER, TIME, TraitReader, stamped
from beaver_memory.search.words import named, terms_of, words_of

ANALYSER = "5"
"""The version of this module, `words.py`, `german.py`, `irregular.toml`, `dates.py` and `traits.py`; stores record it.

A greater number whenever terms or traits change."""

PASSAGE = 900
"""The approximate length of a passage in characters: longer texts are cut between sentences where possible."""

MOST_PASSAGES = 1_200
MOST_QUERY = 4_000
"""Characters of a query that are read."""

MOST_QUERY_TERMS = 64
_KNOWN = 200_000
"""Words whose terms are cached."""

_LONGEST_KNOWN = 64
"""Characters of the longest cached word."""

_KNOWN_DATES = 4_096
_MOST_COUNT = 255
_DIGEST = 8
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f\n])\s+|\n+")
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[^\W\d_]")

_HEAD = struct.Struct("<H")
_PASSAGE_HEAD = struct.Struct("<IHH")
_MOST_LENGTH = 0xFFFF


@attrs.frozen(kw_only=True)
class Passage:
    """The terms of one passage: hashes and how often each occurs; and its traits."""

    hashes: np.ndarray
    counts: np.ndarray
    length: int
    traits: int = 0


class Analyser:
    """Finds the terms of texts. Thread-safe; caches the terms of words.

    A German memory has the terms of its words in both languages, so that a word is found whatever the text around it; a
    German query has those of German alone.
    """

    def __init__(self) -> None:
        self._english = _Digests(english())
        self._german = _Digests(german())
        self._names: dict[str, int] = {}
        self._traits = TraitReader()

    def terms(self, text: str) -> list[int]:
        """Return the terms that a text has as a memory, as hashes."""
        return _hashes(self._of_memory(text.split())[0])

    def query(self, text: str) -> list[int]:
        """Return the distinct terms of a query, in order, up to a limit; see `dates` for those of its dates."""
        pieces = text[:MOST_QUERY].split()
        return list(dict.fromkeys(_hashes(self._digests(pieces).of(pieces))))[:MOST_QUERY_TERMS]

    def dates(self, text: str, now: datetime) -> list[int]:
        """Return the terms of the dates that a query names, as seen from a moment."""
        return [_date(each) for each in dates_of(text[:MOST_QUERY], now.astimezone(UTC).date())]

    def words(self, text: str) -> list[str]:
        """Return the distinct words of a query without stop-words, as they are written."""
        found = dict.fromkeys(words_of(text[:MOST_QUERY]))
        digests = self._digests([*found])
        return [word for word in found if digests.of_word(word)][:MOST_QUERY_TERMS]

    def names(self, text: str) -> list[int]:
        """Return the hash of each word of a query as a name."""
        words = dict.fromkeys(words_of(text[:MOST_QUERY]))
        return list(dict.fromkeys(map(self._name, words)))

    def intent(self, text: str, asker: str) -> Intent:
        """Return what a query asks for; who asks is named by a query in the first person."""
        text = text[:MOST_QUERY]
        names = self.names(text)
        if self._traits.traits_of(text, text.split()) & FIRST:
            names.append(self._name(asker))
        return intent_of(text, names, self._name(asker))

    def language(self, text: str) -> TextLanguage:
        """Return the language of a query, if it is one of those with a scale."""
        text = text[:MOST_QUERY]
        if not text.isascii() and 2 * len(_CHINESE.findall(text)) > len(_LETTER.findall(text)):
            return "chinese"
        return "other" if TELLING.isdisjoint(text.split()) else "german"

    def pack(self, texts: Sequence[str], extra: str = "", day: date | None = None) -> tuple[bytes, int]:
        """Return the packed terms of passages and their total length.

        Args:
            texts: the passages.
            extra: a text whose terms the first passage has too.
            day: the day on which the memory was made; without it no passage has the terms of dates.
        """
        parts, length = [_HEAD.pack(len(texts))], 0
        for text in texts:
            pieces = text.split()
            found, size = self._of_memory(pieces)
            length += size
            if extra:
                found += self._of_memory(extra.split())[0]
                extra = ""
            traits = self._traits.traits_of(text, pieces, len(texts))
            hashes, counts = _counted(found if day is None else found + _dates(text, traits, day))
            parts += (_PASSAGE_HEAD.pack(len(counts), min(size, _MOST_LENGTH), traits), hashes, counts)
        return b"".join(parts), length

    def _name(self, word: str) -> int:
        known = self._names.get(word)
        if known is None:
            if len(self._names) >= _KNOWN:
                self._names.clear()
            known = self._names[word] = name_hash(word)
        return known

    def _digests(self, pieces: Sequence[str]) -> "_Digests":
        """Return what makes the terms of a text, by its language."""
        return self._english if TELLING.isdisjoint(pieces) else self._german

    def _of_memory(self, pieces: Sequence[str]) -> tuple[bytes, int]:
        """Return the terms of a memory, and its length: the number of terms in its own language."""
        found = self._english.of(pieces)
        if TELLING.isdisjoint(pieces):
            return found, len(found) // _DIGEST
        own = self._german.of(pieces)
        # A term of both languages counts once for each word.
        more = Counter(_hashes(own)) - Counter(_hashes(found))
        return found + array("Q", more.elements()).tobytes(), len(own) // _DIGEST


class _Digests:
    """Finds the terms of texts in one language, in packed form; caches those of words."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._known: dict[str, bytes] = {}

    def of(self, pieces: Sequence[str]) -> bytes:
        """Return the terms of a text in order, from its pieces between white space."""
        # Pieces are looked up with the signs around them: that saves finding the words.
        found = list(map(self._known.get, pieces))
        if None in found:
            found = [self._read(piece) if terms is None else terms for piece, terms in zip(pieces, found, strict=True)]
        return b"".join(cast("list[bytes]", found))

    def _read(self, piece: str) -> bytes:
        """Return the terms of a piece between white space."""
        if (piece.isascii() and piece.isalpha()) or (words := words_of(piece)) == [piece]:
            return self._learn(piece)
        return self._remember(piece, b"".join(map(self.of_word, words)))

    def of_word(self, word: str) -> bytes:
        """Return the terms of a word."""
        known = self._known.get(word)
        return self._learn(word) if known is None else known

    def _learn(self, word: str) -> bytes:
        terms = terms_of(word, self._language.root, self._language.stop_words)
        return self._remember(word, b"".join(dict.fromkeys(map(_digest, terms))))

    def _remember(self, piece: str, terms: bytes) -> bytes:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        if len(piece) <= _LONGEST_KNOWN:
            self._known[piece] = terms
        return terms


def _hashes(digests: bytes) -> list[int]:
    return cast("list[int]", np.frombuffer(digests, "<u8").tolist())


def _dates(text: str, traits: int, day: date) -> bytes:
    """Return the terms of the dates that a passage names, and of the day of its memory unless its stamp names one."""
    stamp, said = stamped(text)
    named = dates_of(said, day) if traits & (TIME | NUMBER) else []
    if not (stamp and dates_of(stamp, day)):
        named.append(day.isoformat())
    return b"".join(dict.fromkeys(term for found in named for term in _date_terms(found)))


@lru_cache(maxsize=_KNOWN_DATES)
def _date_terms(found: str) -> tuple[bytes, ...]:
    return tuple(_date(each).to_bytes(_DIGEST, "little") for each in around(found))


def _counted(digests: bytes) -> tuple[bytes, bytes]:
    """Return the distinct terms, and how often each of them occurs."""
    numbers = memoryview(digests).cast("Q")
    if len(set(numbers)) == len(numbers):
        return digests, b"\1" * len(numbers)
    counted = Counter(numbers)
    return array("Q", counted).tobytes(), bytes(min(each, _MOST_COUNT) for each in counted.values())


def _digest(term: str) -> bytes:
    return blake2b(term.encode("utf-8", "replace"), digest_size=_DIGEST).digest()


def _date(found: str) -> int:
    """Return the term of a date."""
    return as_date(hash_of(found))


def hash_of(term: str) -> int:
    """Return the 64 bits of a term or a label."""
    return int.from_bytes(_digest(term), "little")


def name_hash(name: str) -> int:
    """Return the hash of a person in an index: of the first word of the name, as others would say it."""
    first = named(name)
    return hash_of(first) if first else 0


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
    """Return the passages that `pack` has packed.

    Raises:
        ValueError: the bytes are not the result of `pack`.
    """
    try:
        (number,) = _HEAD.unpack_from(packed)
        place, found = _HEAD.size, []
        for _ in range(number):
            size, length, traits = _PASSAGE_HEAD.unpack_from(packed, place)
            place += _PASSAGE_HEAD.size
            hashes = np.frombuffer(packed, "<u8", size, place)
            place += 8 * size
            counts = np.frombuffer(packed, "u1", size, place)
            found.append(Passage(hashes=hashes, counts=counts, length=length, traits=traits))
            place += size
    except struct.error as error:
        raise ValueError("no packed terms") from error
    return found


def label_hashes(labels: Iterable[str]) -> list[int]:
    """Return the hashes of labels in an index."""
    return [hash_of(f"\0{label}") for label in labels]
