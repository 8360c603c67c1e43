"""Looks for what must not stand in a system prompt: instructions that pose as memories.

A net for the common cases, not a proof: it knows words and shapes, no meanings. It is linear in the text: words are
looked up one by one, each becomes the letter of its class, and the patterns run over the short string of letters,
with bounded gaps. Languages without blanks between words are searched for phrases.
"""

import json
import re
import unicodedata
from collections import OrderedDict
from functools import cache
from importlib.resources import files

import attrs

from beaver_hostspecs import holds_secret
from beaver_hostspecs.neutralising import neutralise

LONGEST = 65_536
"""Bytes beyond which an entry is not scanned but refused: nobody reads it either."""

_PIECE = 1024

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060-\u2064\u00ad\ufeff]")
# Thai, Lao, Khmer and Myanmar separate words with a zero width space.
_SOUTH_EAST = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
_WORD_SPACE = re.compile(f"(?<={_SOUTH_EAST})\u200b(?={_SOUTH_EAST})")
_STRAY_SELECTORS, _STRAY_ZERO_WIDTH = 3, 7
"""More than that is no leftover of a paste: it carries something."""
_WORDS = re.compile(r"\w+|[!?;\n|\u3002\uff01\uff1f]|\.(?=\s|$)")
_SPACED = re.compile(r"(?<!\w)\w(?:[ ._*-]\w){5,60}(?!\w)")
_LONGEST_STEM, _SHORTEST_STEM = 14, 2
_MOST_KNOWN = 4000
_MARKS = "\u0300-\u036f"


@attrs.frozen(kw_only=True)
class _Tools:
    """The compiled patterns. Made once, at first use, so that importing costs nothing."""

    words: tuple[tuple[str, re.Pattern[str]], ...]
    shapes: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]
    phrases: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]
    stems: dict[str, str]
    harmless: re.Pattern[str]


def clean(text: str) -> str:
    """Return `text` as it may be stored: line ends as LF, nothing invisible but what scripts and emoji need."""
    return neutralise(text)


def scan(text: str) -> tuple[str, ...]:
    """Return the names of the threats in `text`, sorted; empty if there is none."""
    if _is_too_long(text):
        return ("too_long",)
    lines = _LINE_ENDS.sub("\n", text)
    kept = neutralise(lines)
    found = set(_invisible(lines, kept))
    if holds_secret(text):
        found.add("known_secret")
    plain = _plain(kept)
    found.update(_shaped(plain))
    found.update(_worded(plain))
    if spaced := _SPACED.sub(_closed, plain):
        found.update(_worded(spaced) if spaced != plain else ())
    return tuple(sorted(found))


def _is_too_long(text: str) -> bool:
    """Whether it has too many bytes, or would have when folded: one character may become eighteen."""
    if len(text) > LONGEST or len(text.encode("utf-8", "surrogatepass")) > LONGEST:
        return True
    if text.isascii():
        return False
    total = 0
    # A piece at a time: to fold it all may take longer than all the rest.
    for start in range(0, len(text), _PIECE):
        folded = unicodedata.normalize("NFKC", text[start : start + _PIECE]).casefold()
        total += len(folded.encode("utf-8", "surrogatepass"))
        if total > LONGEST:
            return True
    return False


class Scanner:
    """Scans, and remembers what it found for the entries that stand in every prompt.

    Args:
        most: how many it remembers.
    """

    def __init__(self, most: int = _MOST_KNOWN) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def __call__(self, text: str) -> tuple[str, ...]:
        """Return the names of the threats in `text`; see `scan`."""
        # Secrets become known while the process runs, so that is asked every time.
        if holds_secret(text):
            return scan(text)
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = scan(text)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


def _invisible(lines: str, kept: str) -> list[str]:
    """Name what is hidden: judged on what neutralising takes away, so that emoji and Persian are let be."""
    if kept == lines:
        return []
    lost = {
        "bidirectional_control": _lost(_BIDI, lines, kept) > 0,
        "tag_characters": _lost(_TAGS, lines, kept) > 0,
        "variation_selectors": _lost(_SELECTORS, lines, kept) > _STRAY_SELECTORS,
        "zero_width": _lost(_ZERO_WIDTH, _WORD_SPACE.sub("", lines), _WORD_SPACE.sub("", kept)) > _STRAY_ZERO_WIDTH,
    }
    return [name for name, there in lost.items() if there]


def _lost(pattern: re.Pattern[str], before: str, after: str) -> int:
    return len(pattern.findall(before)) - len(pattern.findall(after))


def _plain(text: str) -> str:
    """Return the text as a reader takes it: without compatibility forms, case, accents and look-alikes."""
    folded = _fold(text)
    return folded if folded.isascii() else folded.translate(_look_alikes(folded))


def _fold(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    # Accents off Latin and Greek letters only: in other scripts marks are vowels. The dotless i has none to lose.
    apart = unicodedata.normalize("NFKD", folded).replace("\u0131", "i")
    return unicodedata.normalize("NFC", _marks().sub("", apart))


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(f"(?<=[a-z\u03b1-\u03c9])[{_MARKS}]+")


@cache
def _tables() -> dict[int, int]:
    pairs = zip("аеорсухіјѕԁһοαενρτικ", "aeopcyxijsdhoaevptik", strict=True)
    return {ord(alike): ord(latin) for alike, latin in pairs}


def _look_alikes(text: str) -> dict[int, int]:
    """Return the table of letters to read as Latin ones: none in a text that is mostly not Latin."""
    latin = sum("a" <= char <= "z" for char in text)
    letters = sum(char.isalpha() for char in text)
    return _tables() if latin * 2 > letters else {}


def _closed(match: re.Match[str]) -> str:
    """Return s p a c e d letters as words: pairs of blanks are gone by now, so all of it is one word."""
    return re.sub(r"[ ._*-]", "", match[0])


def _shaped(plain: str) -> list[str]:
    found = []
    for name, needles, pattern in (*_tools().shapes, *_tools().phrases):
        if any(needle in plain for needle in needles) and pattern.search(plain):
            found.append(name)
    return found


def _worded(plain: str) -> list[str]:
    # The names of settings are words, too.
    classes = _classes(_tools().harmless.sub("", plain.replace("_", " ")))
    return [name for name, pattern in _tools().words if pattern.search(classes)]


def _classes(plain: str) -> str:
    """Return one letter per word: its class, `.` for a word without one, `|` where a sentence ends."""
    known: dict[str, str] = {}
    stems = _tools().stems
    letters = []
    for word in _WORDS.findall(plain):
        letter = known.get(word)
        if letter is None:
            letter = known[word] = _class_of(word, stems)
        letters.append(letter)
    return "".join(letters)


def _class_of(word: str, stems: dict[str, str]) -> str:
    if not word[0].isalnum() and word != "_":
        return "|"
    if exact := stems.get("=" + word):
        return exact
    for length in range(min(len(word), _LONGEST_STEM), _SHORTEST_STEM - 1, -1):
        if letter := stems.get(word[:length]):
            return letter
    return "."


@cache
def _tools() -> _Tools:
    """Read `threats.json`: word classes, patterns over them, shapes and phrases, each with its threat's name.

    What is `harmless` is taken out before words are looked up.

    A stem fits every word that begins with it, one after `=` that word alone. A shape is only searched for where one of
    its plain texts is found. A phrase is one of its first texts near one of its second.
    """
    data = json.loads(files(__package__).joinpath("threats.json").read_text("utf-8"))
    return _Tools(
        words=tuple((name, re.compile(pattern)) for name, pattern in data["words"]),
        shapes=tuple((name, tuple(needles), re.compile(pattern)) for name, needles, pattern in data["shapes"]),
        phrases=tuple((name, *_near(one, other)) for name, one, other in data["phrases"]),
        harmless=re.compile("|".join(data["harmless"])),
        stems={_fold(word): letter for letter, words in data["stems"] for word in words.split()},
    )


def _near(one: list[str], other: list[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    needles = tuple(map(_fold, one))
    first, second = ("|".join(re.escape(_fold(each)) for each in texts) for texts in (one, other))
    return needles, re.compile(f"(?:{first}).{{0,24}}(?:{second})|(?:{second}).{{0,40}}(?:{first})")
