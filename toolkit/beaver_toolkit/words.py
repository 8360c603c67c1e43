"""Which characters make a word: the one place for it. The constants are parts of character classes, without brackets.

A run of letters and digits is a word, with the signs that are written at a letter. Scripts without spaces between words
are split into characters, or pairs of them, by the callers. Hangul has spaces, and endings that make its
characters and pairs find more than its words.
"""

SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese, Khmer."""

SPACELESS = (
    SOUTH_EAST
    + "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"  # Chinese, Japanese
)

HANGUL = "\u1100-\u11ff\uac00-\ud7af"

INDIC = "\u0900-\u0963\u0966-\u0dff"
"""Letters and vowel signs of the scripts of India, without their two full stops."""

SIGNS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc"
    "\u0ec8-\u0ecd\u102b-\u103e\u1056-\u1059\u17b4-\u17d3" + INDIC
)
"""Accents and vowel signs, which regular expressions do not count as letters."""

SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"
"""Arrows, shapes and emojis: each is a word by itself."""

LONGEST = 64
"""Characters of a word that count; a longer run is data and not language."""


def pairs(run: str) -> list[str]:
    """Return each pair of neighbours in a run of characters without spaces."""
    return [run[place : place + 2] for place in range(len(run) - 1)]
