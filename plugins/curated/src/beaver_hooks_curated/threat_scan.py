"""Finds texts that must not stand in a system prompt: instructions that pose as memories.

A net for the common cases, not a proof: it knows words and shapes, no meanings. It is linear in the text: each word
becomes the sign of its classes, and the orders of the `lexicon` run over the short string of signs, with bounded gaps.
They run twice, over the text as it stands and over its flat view: see `views`.
"""

import re
import unicodedata
from functools import lru_cache

from beaver_hooks_curated import views
from beaver_hooks_curated.lexicon import lexicon
from beaver_hostspecs import holds_secret
from beaver_hostspecs.neutralising import neutralise
from beaver_toolkit.redaction.redactor import Redactor
from beaver_toolkit.words import SOUTH_EAST

LONGEST = 65_536
"""Bytes beyond which an entry is refused without a scan; a user would not read it either."""

_PIECE = 1024

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_ZERO_WIDTH = re.compile("[\u200b-\u200d\u2060-\u2064\u00ad\ufeff]")
# Thai, Lao, Khmer and Myanmar separate words with a zero width space.
_WORD_SPACE = re.compile(f"(?<=[{SOUTH_EAST}])\u200b(?=[{SOUTH_EAST}])")
_STRAY_SELECTORS, _STRAY_ZERO_WIDTH = 3, 7
"""More of them are no leftover of a paste, but carry a payload."""
_MOST_CACHED = 4000


def clean(text: str) -> str:
    """Return `text` as it may be stored: line ends as LF, no invisible characters but those of scripts and emoji."""
    return neutralise(text)


def one_line(text: str, most: int) -> str:
    """Return a cleaned text in one line of at most so many characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def scan(text: str) -> tuple[str, ...]:
    """Return the names of the threats in `text`, sorted; empty if there is none."""
    if _is_too_long(text):
        return ("too_long",)
    lines = _LINE_ENDS.sub("\n", text)
    kept = neutralise(lines)
    found = set(_invisible(lines, kept))
    if holds_secret(text):
        found.add("known_secret")
    elif Redactor().find(text):
        found.add("hardcoded_secret")
    plain = views.plain(kept)
    found.update(_shaped(plain))
    found.update(_ordered(plain))
    return tuple(sorted(found))


def threats(text: str) -> tuple[str, ...]:
    """Return what `scan` returns, cached for the entries that stand in every prompt."""
    # A credential may become known after the result was cached.
    return scan(text) if holds_secret(text) else _cached_scan(text)


_cached_scan = lru_cache(_MOST_CACHED)(scan)


def _is_too_long(text: str) -> bool:
    """Whether it has too many bytes, or would have when folded: one character may become eighteen."""
    if len(text) > LONGEST or len(text.encode("utf-8", "surrogatepass")) > LONGEST:
        return True
    if text.isascii():
        return False
    total = 0
    # A piece at a time: folding the whole text may take longer than the rest of the scan.
    for start in range(0, len(text), _PIECE):
        folded = unicodedata.normalize("NFKC", text[start : start + _PIECE]).casefold()
        total += len(folded.encode("utf-8", "surrogatepass"))
        if total > LONGEST:
            return True
    return False


def _invisible(lines: str, kept: str) -> list[str]:
    """Name the threats of the characters that neutralising removes, so that emoji and Persian pass."""
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


def _shaped(plain: str) -> set[str]:
    characters = frozenset(plain)
    shapes = lexicon().shapes
    return {each.name for each in shapes if each.may_be_in(plain, characters) and each.pattern.search(plain)}


def _ordered(plain: str) -> set[str]:
    """Name the orders in a plain text: as its lines stand, and flat."""
    words, characters = lexicon(), frozenset(plain)
    for each in words.names:
        if each.may_be_in(plain, characters):
            plain = each.pattern.sub(f" {each.name} ", plain)
    found = words.ordered(plain)
    flat = views.flat(plain)
    return found if flat is None else found | words.ordered(flat, in_letters=True)
