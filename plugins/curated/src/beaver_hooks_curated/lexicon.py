"""Reads `threats.json`: classes of words, and the orders that are made of them.

Each word of a text becomes one sign, a character that stands for its classes, `.` if it has none. Where a sentence
begins or ends there is a `|`. An order is a pattern over those signs:

    revoke 3 your 2 norm/prompt     a word of the class `revoke`, up to three others, one of `your`, up to two others,
                                    one of `norm` or `prompt`
    2*all/the                       up to two words of these classes
    any                             one word of any class
    !norm                           the next word is not of that class
    start, end                      where a sentence begins, perhaps with words of the class `polite`, or ends
    plainly                         the next word is neither denied ("never ignore") nor reported ("says to ignore")

A stem fits each word that begins with it; after `=` it is that word alone. A word has all classes of all stems that
fit. Chinese is not divided into words: each of its stems is a word where it stands, and so is any other character.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import starmap
from typing import Any

import attrs

from beaver_hooks_curated.views import fold, letters

_HAN = "\u3400-\u9fff"
_HAN_WORD = re.compile(f"[{_HAN}]")
_LONGEST_STEM, _SHORTEST_STEM = 16, 2
_FIRST_SIGN = 0xE000
_NONE, _END, _CUT = ".", "|", "/"
_STRIDE, _OVERLAP = 64, 32
_OTHER = f"[^{_END}{_CUT}]"

Parts = dict[str, Any]


@attrs.frozen(kw_only=True)
class Shape:
    """A pattern over a text, searched only where one of its plain texts, the needles, is found.

    Attributes:
        name: the threat, or the word that stands for a match of the pattern.
    """

    name: str
    pattern: re.Pattern[str]
    _needles: tuple[tuple[str, frozenset[str]], ...]

    @classmethod
    def of(cls, name: str, needles: Iterable[str], pattern: str) -> "Shape":
        """Return the shape of a row of the file."""
        return cls(name=name, pattern=re.compile(pattern), needles=tuple((each, frozenset(each)) for each in needles))

    def may_be_in(self, text: str, characters: frozenset[str]) -> bool:
        """Whether a needle is in the text, which has these characters."""
        return any(needed <= characters and needle in text for needle, needed in self._needles)


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The signs of stems, and the prefixes by which most other words are ruled out."""

    _stems: Mapping[str, str]
    _starts: frozenset[str]

    @classmethod
    def of(cls, stems: Mapping[str, str]) -> "Vocabulary":
        """Return the vocabulary of these stems."""
        return cls(stems=stems, starts=frozenset(stem.removeprefix("=")[:_SHORTEST_STEM] for stem in stems))

    def signs(self, words: Sequence[str]) -> str:
        """Return the sign of each word; each different word is looked up once."""
        found = {word: self._sign(word) for word in dict.fromkeys(words)}
        return "".join(map(found.__getitem__, words))

    def _sign(self, word: str) -> str:
        """Return the sign of the whole word, or of the longest stem that it begins with."""
        if not word[0].isalnum():
            return _END
        if word[:_SHORTEST_STEM] not in self._starts:
            return _NONE
        if exact := self._stems.get("=" + word):
            return exact
        for length in range(min(len(word), _LONGEST_STEM), _SHORTEST_STEM - 1, -1):
            if found := self._stems.get(word[:length]):
                return found
        return _NONE


@attrs.frozen(kw_only=True)
class Lexicon:
    """The knowledge of the scan.

    Attributes:
        shapes: threats as patterns over the text.
        names: texts that are one word for the orders; of the name `harmless`, texts that only look like an order.
    """

    shapes: tuple[Shape, ...]
    names: tuple[Shape, ...]
    _orders: re.Pattern[str]
    _threats: tuple[str, ...]
    _tokens: re.Pattern[str]
    _vocabulary: Vocabulary
    _vocabulary_in_letters: Vocabulary

    def ordered(self, text: str, *, in_letters: bool = False) -> set[str]:
        """Name the threats of the orders in a plain text, or in one `in_letters`, as a flat one is."""
        vocabulary = self._vocabulary_in_letters if in_letters else self._vocabulary
        signs = vocabulary.signs(self._tokens.findall(text))
        matches = self._orders.finditer(_distinct(signs))
        return {self._threats[match.lastindex - 1] for match in matches if match.lastindex}


@cache
def lexicon() -> Lexicon:
    """Return the lexicon of `threats.json`, read at first use, so that importing costs nothing."""
    data = json.loads(files(__package__).joinpath("threats.json").read_text("utf-8"))
    stems = _stems(data["classes"])
    signs = {classes: chr(_FIRST_SIGN + number) for number, classes in enumerate(sorted(set(stems.values())))}
    of_class = {name: "".join(signs[classes] for classes in signs if name in classes) for name in data["classes"]}
    tree, threats = _tree(data["orders"], of_class)
    by_stem = {stem: signs[classes] for stem, classes in stems.items()}
    return Lexicon(
        shapes=(*starmap(Shape.of, data["shapes"]), *(_near(*each) for each in data["phrases"])),
        names=tuple(starmap(Shape.of, data["names"])),
        orders=re.compile(tree),
        threats=threats,
        tokens=_token_pattern(by_stem),
        vocabulary=Vocabulary.of(by_stem),
        vocabulary_in_letters=Vocabulary.of({letters(stem): sign for stem, sign in by_stem.items()}),
    )


def _distinct(signs: str) -> str:
    """Return the signs in pieces, each once, so that repetition costs nothing. They overlap by the longest order."""
    signs = f"{_END}{signs}{_END}"
    pieces = dict.fromkeys(signs[at : at + _STRIDE + _OVERLAP] for at in range(0, len(signs), _STRIDE))
    return _CUT.join(pieces)


def _stems(classes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the classes of each stem, with those of the shorter stems that it begins with."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, words in classes.items():
        for word in words.split():
            found[f"={word}" if _HAN_WORD.match(word) else fold(word)].add(name)
    return {stem: tuple(sorted(names.union(*_shorter(stem.removeprefix("="), found)))) for stem, names in found.items()}


def _shorter(word: str, found: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the classes of the stems that a word begins with."""
    return [found[word[:length]] for length in range(_SHORTEST_STEM, len(word) + 1) if word[:length] in found]


def _token_pattern(stems: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that divides a text into words and ends of sentences."""
    terms = sorted((word for stem in stems if _HAN_WORD.match(word := stem.removeprefix("="))), key=len, reverse=True)
    firsts = "".join(sorted({term[0] for term in terms}))
    ends = r"[!?;\n|\u3002\uff01\uff1f]|\.(?=\s|$)"
    return re.compile(rf"[^\W_{_HAN}]+|(?=[{firsts}])(?:{'|'.join(terms)})|[{_HAN}]|{ends}")


def _tree(orders: Mapping[str, list[str]], of_class: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return one pattern for all orders, and the threat of each of its groups. Orders share what they begin with."""
    root: Parts = {}
    for threat, patterns in orders.items():
        for order in patterns:
            branch = root
            for part in _parts(order, of_class):
                branch = branch.setdefault(part, {})
            branch[""] = threat
    threats: list[str] = []
    return _branches(root, threats), tuple(threats)


def _branches(branch: Parts, threats: list[str]) -> str:
    """Return the pattern of a branch; an empty group ends each order and says by its number which one it was."""
    if "" in branch:
        threats.append(branch[""])
        return "()"
    alternatives = [part + _branches(rest, threats) for part, rest in branch.items()]
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def _parts(order: str, of_class: Mapping[str, str]) -> list[str]:
    """Return the patterns of the parts of an order: see the module. A misspelt class is a `KeyError`."""
    words = order.split()
    if words[0] != "plainly":
        return [_part(word, of_class) for word in words]
    return [_part(words[1], of_class) + _plainly(of_class), *(_part(word, of_class) for word in words[2:])]


def _part(part: str, of_class: Mapping[str, str]) -> str:
    if part.isdigit():
        return f"{_OTHER}{{0,{part}}}"
    if part == "any":
        return _OTHER
    if part == "start":
        return rf"\|[{of_class['polite']}]{{0,3}}"
    if part.startswith("!"):
        return f"(?!{_part(part[1:], of_class)})"
    count, _, names = part.rpartition("*")
    signs = "".join(_END if name == "end" else of_class[name] for name in names.split("/"))
    return f"[{signs}]{{0,{count}}}" if count else f"[{signs}]"


def _plainly(of_class: Mapping[str, str]) -> str:
    """Return the pattern of `plainly`; it looks at the signs before the word that must not be denied or reported."""
    report, to, no, rel = (of_class[name] for name in ("report", "to", "deny", "rel"))
    return f"(?<![{report}][{to}].)(?<![{report}]{_OTHER}[{to}].)(?<![{no}{rel}].)(?<![{no}][{to}].)"


def _near(name: str, one: list[str], other: list[str]) -> Shape:
    """Return the shape of one of the first texts near one of the second."""
    first, second = ("|".join(re.escape(fold(each)) for each in texts) for texts in (one, other))
    return Shape.of(name, map(fold, one), f"(?:{first}).{{0,24}}(?:{second})|(?:{second}).{{0,40}}(?:{first})")
