"""Makes text harmless to read: removes invisible characters, keeps the characters that people write.

Invisible characters carry payloads that a model reads and its user does not, and bidirectional controls
show the user another text than the model gets. The rules, in the order in which they are applied:

1. **Line ends.** CR LF, CR, VT, FF, NEL, U+2028 and U+2029 become LF. LF and TAB stay.
2. **Removed everywhere**: every other control character (Cc); every format character (Cf) that no rule
   below names, all bidirectional controls included; every variation selector but VS15 and VS16, the
   Mongolian and the ideographic ones too; the Hangul fillers, the Khmer inherent vowels, the combining
   grapheme joiner; every reserved code point that Unicode promises to be ignorable.
3. **Replaced by U+FFFD**: lone surrogates and noncharacters.
4. **Prepended signs** (the Arabic number signs and their kin: visible, though Cf) stay directly before a
   letter or digit of their script.
5. **Tag characters** stay as one of the three subdivision flags in general use (England, Scotland, Wales),
   exactly.
6. **VS15 and VS16** stay directly after a pictograph, at most one, and inside a keycap (`1`, VS16, U+20E3).
7. **ZWJ** stays between two pictographs (the left one may carry VS16 or a skin tone), and directly after a
   letter or mark of a script that joins.
8. **ZWNJ** stays between two letters or marks of scripts that join.
9. **At most one** ZWJ or ZWNJ of rules 7 and 8 stays in a row.

A patient writer can still hide data in three choices: whether a pictograph carries VS15, VS16 or none, whether
two letters of a joining script are held apart, and which of the visible blanks is used. That is a bit or two per
visible character, and the reader sees the characters. `docs/explanation/decisions/0004-neutralising-recalled-text.md`
has the reasons.

`neutralise` is idempotent, takes time linear in the text, and returns the same object for an unchanged text.
The tables are part of the rules: they do not change with the Unicode version of the interpreter, except for the
sets of letters and marks.
"""

import re
from collections.abc import Iterable
from functools import cache
from unicodedata import category

import attrs

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_ZWNJ, _ZWJ = "\u200c", "\u200d"
_PRESENTATION = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_KEYCAP_BASES = frozenset("0123456789#*")
_BLACK_FLAG = "\U0001f3f4"
_TAGS = "\U000e0000-\U000e007f"

# Rule 1.
_LINE_ENDS = "\r\n?|[\x0b\x0c\x85\u2028\u2029]"
# Rule 2, without the characters of other rules: VS15, VS16, ZWNJ, ZWJ, tags and prepended signs.
_REMOVED = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
)
# Rule 3: surrogates, U+FDD0 to U+FDEF, and the last two code points of each of the 17 planes.
_REPLACED = "\ud800-\udfff\ufdd0-\ufdef" + "".join(
    f"{chr(plane | 0xFFFE)}{chr(plane | 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
# Rule 4: the signs of one script, and the blocks of that script.
_ARABIC_SIGNS, _ARABIC = (
    "\u0600-\u0605\u06dd\u0890\u0891\u08e2",
    ((0x0600, 0x06FF), (0x0750, 0x077F), (0x0870, 0x08FF)),
)
_SYRIAC_SIGNS, _SYRIAC = "\u070f", ((0x0700, 0x074F), (0x0860, 0x086F))
_KAITHI_SIGNS, _KAITHI = "\U000110bd\U000110cd", ((0x11080, 0x110CF),)
_SIGNS = _ARABIC_SIGNS + _SYRIAC_SIGNS + _KAITHI_SIGNS
# Rule 5.
_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
# The characters of rules 5 to 9, which are judged a run at a time.
_IN_CONTEXT = _ZWNJ + _ZWJ + _PRESENTATION + _TAGS
# A text without any of these passes. Beyond the first plane only the usual emoji do: a class of many ranges
# up there makes the search ten times as slow.
_WORTH_A_LOOK = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U00010000-\U0001efff\U0001fffe-\U0010ffff"
)
# Rules 6 and 7: the extended pictographs of Unicode, the reserved ones included.
_PICTOGRAPHS = (
    (0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122), (0x2139, 0x2139),
    (0x2194, 0x2199), (0x21A9, 0x21AA), (0x231A, 0x231B), (0x2328, 0x2328), (0x2388, 0x2388),
    (0x23CF, 0x23CF), (0x23E9, 0x23F3), (0x23F8, 0x23FA), (0x24C2, 0x24C2), (0x25AA, 0x25AB),
    (0x25B6, 0x25B6), (0x25C0, 0x25C0), (0x25FB, 0x25FE), (0x2600, 0x2605), (0x2607, 0x2612),
    (0x2614, 0x2685), (0x2690, 0x2705), (0x2708, 0x2712), (0x2714, 0x2714), (0x2716, 0x2716),
    (0x271D, 0x271D), (0x2721, 0x2721), (0x2728, 0x2728), (0x2733, 0x2734), (0x2744, 0x2744),
    (0x2747, 0x2747), (0x274C, 0x274C), (0x274E, 0x274E), (0x2753, 0x2755), (0x2757, 0x2757),
    (0x2763, 0x2767), (0x2795, 0x2797), (0x27A1, 0x27A1), (0x27B0, 0x27B0), (0x27BF, 0x27BF),
    (0x2934, 0x2935), (0x2B05, 0x2B07), (0x2B1B, 0x2B1C), (0x2B50, 0x2B50), (0x2B55, 0x2B55),
    (0x3030, 0x3030), (0x303D, 0x303D), (0x3297, 0x3297), (0x3299, 0x3299), (0x1F000, 0x1F0FF),
    (0x1F10D, 0x1F10F), (0x1F12F, 0x1F12F), (0x1F16C, 0x1F171), (0x1F17E, 0x1F17F), (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A), (0x1F1AD, 0x1F1E5), (0x1F201, 0x1F20F), (0x1F21A, 0x1F21A), (0x1F22F, 0x1F22F),
    (0x1F232, 0x1F23A), (0x1F23C, 0x1F23F), (0x1F249, 0x1F3FA), (0x1F400, 0x1F53D), (0x1F546, 0x1F64F),
    (0x1F680, 0x1F6FF), (0x1F774, 0x1F77F), (0x1F7D5, 0x1F7FF), (0x1F80C, 0x1F80F), (0x1F848, 0x1F84F),
    (0x1F85A, 0x1F85F), (0x1F888, 0x1F88F), (0x1F8AE, 0x1F8FF), (0x1F90C, 0x1F93A), (0x1F93C, 0x1F945),
    (0x1F947, 0x1FAFF), (0x1FC00, 0x1FFFD),
)  # fmt: skip
_SKIN_TONES = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
# Rules 7 and 8: the blocks of scripts whose letters join or form conjuncts.
_JOINING = (
    (0x0600, 0x077F), (0x07C0, 0x07FF), (0x0840, 0x086F), (0x0870, 0x08FF),  # Arabic, Syriac, N'Ko, Mandaic
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x1000, 0x109F), (0x1780, 0x17FF), (0x1800, 0x18AF),  # Myanmar, Khmer, Mongolian
    (0x1A20, 0x1AAF), (0x1B00, 0x1BFF), (0x1C00, 0x1C4F),  # Tai Tham, Balinese to Batak, Lepcha
    (0xA800, 0xA82F), (0xA840, 0xA8FF), (0xA980, 0xA9FF),  # Syloti Nagri, Phags-pa, Javanese
    (0xAA60, 0xAA7F), (0xAAE0, 0xAAFF), (0xABC0, 0xABFF),  # Myanmar, Meetei Mayek
    (0x10AC0, 0x10AFF), (0x10B80, 0x10BAF), (0x10D00, 0x10D3F), (0x10F30, 0x10FDF),  # Manichaean to Elymaic
    (0x11000, 0x1147F), (0x11480, 0x114DF), (0x11580, 0x1173F), (0x11800, 0x1184F), (0x11900, 0x1195F),
    (0x119A0, 0x11AAF), (0x11C00, 0x11CBF), (0x11D00, 0x11DAF), (0x11EE0, 0x11F5F),  # Brahmic
    (0x1E900, 0x1E95F),  # Adlam
)  # fmt: skip


def neutralise(text: str) -> str:
    """Return `text` by the rules above, without invisible characters but those of emoji and joining scripts.

    Idempotent, and linear in the length of `text`. Any `str` is taken, lone surrogates included.
    """
    rules = _rules()
    if rules.anything.search(text) is None:
        return text
    text = rules.line_ends.sub("\n", text)
    text = rules.removed.sub("", text)
    text = rules.replaced.sub(REPLACEMENT, text)
    text = rules.stray_signs.sub("", text)
    # The neighbours of a run are final only now, so a second pass decides the same.
    return rules.runs.sub(rules.judge, text)


@attrs.frozen(kw_only=True)
class _Rules:
    """The compiled tables. Made once, at first use, so that importing costs nothing."""

    anything: re.Pattern[str]
    line_ends: re.Pattern[str]
    removed: re.Pattern[str]
    replaced: re.Pattern[str]
    stray_signs: re.Pattern[str]
    runs: re.Pattern[str]
    pictographs: frozenset[str]
    joining: frozenset[str]

    def judge(self, match: re.Match[str]) -> str:
        """Return the allowed part of one run of characters that are legal in some contexts."""
        run, text = match[0], match.string
        before = text[max(0, match.start() - 2) : match.start()]
        after = text[match.end() : match.end() + 1]
        if before.endswith(_BLACK_FLAG):  # Rule 5.
            for flag in _FLAGS:
                if run.startswith(flag):
                    return flag
        kept = self._presentation(before, run, after)
        return kept + self._joiner(before + kept, run[len(kept) : len(kept) + 1], after)

    def _presentation(self, before: str, run: str, after: str) -> str:
        """Rule 6: the VS15 or VS16 at the start of the run, if it may stay."""
        if run[0] not in _PRESENTATION:
            return ""
        keycap = before[-1:] in _KEYCAP_BASES and after == _KEYCAP
        return run[0] if keycap or before[-1:] in self.pictographs else ""

    def _joiner(self, before: str, joiner: str, after: str) -> str:
        """Rules 7 to 9: the first ZWJ or ZWNJ after it, if it may stay; what follows it never does."""
        in_script = before[-1:] in self.joining
        if joiner == _ZWNJ:  # Rule 8.
            return joiner if in_script and after in self.joining else ""
        if joiner == _ZWJ:  # Rule 7.
            return joiner if in_script or (self._ends_pictograph(before) and after in self.pictographs) else ""
        return ""

    def _ends_pictograph(self, before: str) -> bool:
        if before[-1:] == _PRESENTATION[1] or before[-1:] in _SKIN_TONES:
            before = before[:-1]
        return before[-1:] in self.pictographs


@cache
def _rules() -> _Rules:
    return _Rules(
        anything=re.compile(f"[{_WORTH_A_LOOK}]"),
        line_ends=re.compile(_LINE_ENDS),
        removed=re.compile(f"[{_REMOVED}]+"),
        replaced=re.compile(f"[{_REPLACED}]"),
        stray_signs=re.compile(_stray_signs()),
        runs=re.compile(f"[{_IN_CONTEXT}]+"),
        pictographs=frozenset(_characters(_PICTOGRAPHS)),
        joining=frozenset(char for char in _characters(_JOINING) if category(char)[0] in "LM"),
    )


def _stray_signs() -> str:
    """Rule 4 as a pattern: a sign that no letter or digit of its script follows."""
    scripts = ((_ARABIC_SIGNS, _ARABIC), (_SYRIAC_SIGNS, _SYRIAC), (_KAITHI_SIGNS, _KAITHI))
    legal = (
        f"(?!(?<=[{signs}])[{''.join(char for char in _characters(blocks) if category(char)[0] in 'LN')}])"
        for signs, blocks in scripts
    )
    return f"[{_SIGNS}]" + "".join(legal)


def _characters(ranges: Iterable[tuple[int, int]]) -> Iterable[str]:
    return (chr(code) for first, last in ranges for code in range(first, last + 1))
