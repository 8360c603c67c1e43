"""Reads the vocabularies: one TOML file for each language.

`parts` are expressions that others name in braces. `words` are lists, `marks` are expressions of whole words. Each
entry of `attributes` is an attribute that has one value at a time: its patterns find it in a statement, the group `v`
is its value, and the groups `k`, `n` and `g` belong to the subject (`g` does not if that is the speaker). An attribute
with `nouns` is found by the patterns of `noun` too. A pattern that begins with any text begins with `^`: searched from
every place of a statement, it would take as many times as long. `languages.toml` has the marks of each language.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import attrs

from beaver_memory.reconcile.vocabulary.expressions import Clues, Expression, Sets
from beaver_memory.reconcile.vocabulary.word_forms import characters, english_words, german_words, pairs_of

_CHINESE = re.compile(r"[\u3400-\u9fff]")

NOTHING = "(?!)"
"""An expression that finds nothing."""

FORMS = 8_192
"""Words whose forms are kept."""

_FINDERS = ("replacements", "conditions", "purposes", "places", "coordinations")
"""Marks that find words of a statement, in the group `x`."""

LANGUAGES = ("en", "de", "zh")
"""The codes of the languages that have a vocabulary."""

_WORDS = MappingProxyType({"en": english_words, "de": german_words, "zh": characters})


@attrs.frozen(kw_only=True)
class Family:
    """An attribute, with the ways to say it.

    Attributes:
        name: its name, the same in all languages.
        patterns: each finds the attribute in a statement.
        triggers: words that belong to the attribute and not to the subject.
        of_things: everything else in the statement names the subject. Otherwise a statement in the first person is
            about the speaker, whatever else it holds.
        marked: it may have several values at a time, unless a change is marked.
        found_by: words to search for, by which a statement with other words for the attribute is found.
        descriptions: finds, in what introduces a value and `|` and the value, that it describes its subject, beside
            which a value holds: "a small flat" beside a city.
        endings: finds statements about when something ends, beside which its beginning holds.
    """

    name: str
    patterns: tuple[Expression, ...]
    triggers: Expression
    descriptions: Expression
    endings: Expression
    of_things: bool = False
    marked: bool = False
    found_by: str = ""

    @cached_property
    def clues(self) -> Sets:
        """Clues of which every match of any pattern holds one; none if a pattern has none."""
        each = [pattern.clues for pattern in self.patterns]
        return (frozenset().union(*(sets[0] for sets in each)),) if all(each) else ()


@attrs.frozen(kw_only=True)
class Vocabulary:
    """The words of a language.

    Attributes:
        language: its code.
        clues: those of its expressions.
        idle: words that name neither a subject nor a value.
        names: finds names by the way they are written, as far as the language shows it.
        numbers: words for numbers.
        weak: words that are in statements about anything, for example verbs like "use".
        kinds: words of one kind, for example days, each with the name of its kind.
        same: words that mean the same, each with one of them.
        contrasts: words that tell two things of a kind apart.
        kin: words for people by their relation to the speaker, each with one name.
        first_person: words for the speaker.
        possessives: words that say that something is the speaker's; none where they are part of a name for it.
        asides: phrases of time and circumstance that are left out.
        changes: marks of a change: the statement holds in place of another one.
        perfect: marks of something that has happened, and so may have changed something.
        newness: finds the thing that is called new, in the group `x`; a mark of a change of that thing alone.
        quotes: finds the words of another speaker.
        additions: marks of an addition: the other one holds too.
        endings: marks of an end or a denial.
        plain: marks of a denial that tells of no end.
        past: marks of a state that had ended already.
        plans: marks of a state that does not hold yet, or perhaps never.
        events: marks of something that happened once.
        roles: relations that one person has at a time to a thing, for example to lead it.
        several: words for actions and attributes that have several values at a time.
        relations: what tells that a statement says what its subject has, and what it is.
        replacements: each finds the thing that was given up, in the group `x`.
        conditions: each finds when a statement holds, in the group `x`, for example "on Sundays".
        purposes: each finds what it holds for.
        places: each finds where a denial holds; in other statements a place is a value.
        coordinations: each finds a list, its last member in the group `y` and the others in `x`.
        scheduled: marks of an event at a time that has not come.
        switches: marks of a change from one of several values to another one, for example "instead".
        actors: words by which a speaker says what they do.
        weekdays: days of the week.
        families: the attributes.
    """

    language: str
    clues: Clues
    idle: frozenset[str]
    names: re.Pattern[str]
    numbers: frozenset[str]
    weak: frozenset[str]
    kinds: Mapping[str, str]
    same: Mapping[str, str]
    contrasts: frozenset[str]
    kin: Mapping[str, str]
    first_person: Expression
    possessives: Expression
    asides: Expression
    changes: Expression
    perfect: Expression
    newness: Expression
    quotes: Expression
    additions: Expression
    endings: Expression
    plain: Expression
    past: Expression
    plans: Expression
    events: Expression
    roles: Expression
    several: Expression
    relations: tuple[Expression, ...]
    replacements: tuple[Expression, ...]
    conditions: tuple[Expression, ...]
    purposes: tuple[Expression, ...]
    places: tuple[Expression, ...]
    coordinations: tuple[Expression, ...]
    scheduled: Expression
    switches: Expression
    actors: Expression
    weekdays: Expression
    families: tuple[Family, ...]

    def words(self, text: str) -> list[str]:
        """Return the words of a text that name a subject or a value, in one form each."""
        found = (word for word in _WORDS[self.language](text, self.idle) if word not in self.idle)
        return [self.same.get(word, word) for word in found]

    def topics(self, text: str) -> frozenset[str]:
        """Return the words of a text that tell what it is about; of Chinese, each two neighbouring characters."""
        if self.language == "zh":
            return frozenset(pairs_of(text, self.idle)) - self.weak
        words = frozenset(word for word in self.words(text) if not any(map(str.isdigit, word)))
        return words - self.weak - self.numbers - self.kinds.keys()

    def modifiers(self, text: str) -> dict[str, str]:
        """Return what stands directly before each topic of a text: a topic, or a word that tells things apart."""
        if self.language == "zh":
            pairs = pairs_of(text, self.idle)
            return {after: before for before, after in pairwise(pairs) if before[-1] == after[0]}
        topics = self.topics(text)
        raw = [*map(self._form, text.split())]
        named = topics | self.contrasts
        return {after: before for before, after in pairwise(raw) if before in named and after in topics}

    def _form(self, word: str) -> str:
        return _form_of(self.language, word)

    def kin_in(self, text: str) -> frozenset[str]:
        """Return the names of the relations in a text."""
        if self.language == "zh":
            return frozenset(name for word, name in self.kin.items() if word in text)
        return frozenset(self.kin[word] for word in re.findall(r"\w+", text.casefold()) if word in self.kin)

    def words_found(self, finders: Iterable[Expression], text: str) -> frozenset[str]:
        """Return the words that some of the marks find in a text."""
        return frozenset(word for each in finders for match in each.finditer(text) for word in self.words(match["x"]))

    def contrasts_in(self, text: str) -> frozenset[str]:
        """Return the words of a text that tell two things of a kind apart."""
        if self.language == "zh":
            return frozenset(word for word in self.contrasts if word in text)
        return self.contrasts.intersection(self.words(text))


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of a language: `en`, `de` or `zh`."""
    given = tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
    clues, spaced = Clues.of_language(language), language != "zh"
    parts = _Parts(given["parts"], clues)
    finders = {name: [parts.expression(text) for text in given["marks"].pop(name)] for name in _FINDERS}
    return Vocabulary(
        language=language,
        clues=clues,
        idle=frozenset([*given["words"]["idle"].split(), *_forms(language, given["words"]["idle"])]),
        names=re.compile(given["words"].get("names", NOTHING)),
        numbers=frozenset([*given["words"]["numbers"].split(), *_forms(language, given["words"]["numbers"])]),
        weak=frozenset(_forms(language, given["words"]["weak"])),
        kinds={word: texts.split()[0] for texts in given["words"]["kinds"] for word in _forms(language, texts)},
        same={word: _forms(language, texts)[0] for texts in given["words"]["same"] for word in _forms(language, texts)},
        contrasts=frozenset(_forms(language, given["words"]["contrasts"])),
        kin={word: names.split()[0] for names in given["words"]["kin"] for word in names.split()},
        replacements=tuple(finders["replacements"]),
        conditions=tuple(finders["conditions"]),
        purposes=tuple(finders["purposes"]),
        places=tuple(finders["places"]),
        coordinations=tuple(finders["coordinations"]),
        relations=tuple(_marks([text], parts, spaced=spaced) for text in given["marks"].pop("relations")),
        newness=parts.expression("|".join(given["marks"].pop("newness"))),
        quotes=parts.expression("|".join(given["marks"].pop("quotes"))),
        families=tuple(
            _family(name, each, parts, given["noun"], spaced=spaced) for name, each in given["attributes"].items()
        ),
        **{name: _marks(texts, parts, spaced=spaced) for name, texts in given["marks"].items()},
    )


@lru_cache(maxsize=FORMS)
def _form_of(language: str, word: str) -> str:
    return next(iter(vocabulary(language).words(word)), "")


def _forms(language: str, words: str) -> list[str]:
    return _WORDS[language](words, ()) if language != "zh" else words.split()


def _family(name: str, given: Mapping[str, Any], parts: "_Parts", noun: Mapping[str, Any], *, spaced: bool) -> Family:
    texts = list(given.get("patterns", ()))
    if "nouns" in given:
        # An attribute without other words for it has nouns that mean different things, so the noun is of the subject.
        prefix = noun.get("prefix", "")
        known = f"(?P<n>{prefix})(?:{given['nouns']})" if prefix else f"(?:{given['nouns']})"
        named = known if "found_by" in given else f"(?P<n>{prefix}(?:{given['nouns']}))"
        texts += [text.replace("{noun}", noun["named"].replace("{nouns}", named)) for text in noun["patterns"]]
    return Family(
        name=name,
        patterns=tuple(parts.expression(text) for text in texts),
        triggers=_marks([given.get("triggers", NOTHING)], parts, spaced=spaced),
        of_things=given.get("of_things", False),
        marked=given.get("marked", False),
        found_by=given.get("found_by", ""),
        descriptions=parts.expression(given.get("descriptions", NOTHING)),
        endings=_marks([given.get("endings", NOTHING)], parts, spaced=spaced),
    )


def _marks(texts: Iterable[str], parts: "_Parts", *, spaced: bool) -> Expression:
    any_of = f"(?:{'|'.join(texts)})"
    return parts.expression(rf"(?<!\w){any_of}(?!\w)" if spaced else any_of)


class _Parts:
    """The expressions that others of a language name in braces."""

    def __init__(self, given: Mapping[str, str], clues: Clues) -> None:
        self._clues = clues
        self._parts: dict[str, str] = {}
        for name, text in given.items():
            self._parts[name] = self._filled(text)

    def expression(self, text: str) -> Expression:
        """Return an expression with the parts that it names."""
        return Expression(self._filled(text), self._clues)

    def _filled(self, text: str) -> str:
        for name, part in self._parts.items():
            text = text.replace(f"{{{name}}}", part)
        return text


def language_of(text: str) -> str:
    """Return the language of a text: `zh`, `de` or `en`."""
    if _CHINESE.search(text):
        return "zh"
    german = _count("de", text)
    return "de" if german and german > _count("en", text) else "en"


def _count(language: str, text: str) -> int:
    return sum(len(each.findall(text)) for each in _language_marks()[language])


@cache
def _language_marks() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    given = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {
        name: (
            re.compile(rf"{_letters(each['letters'])}\b(?:{'|'.join(each['words'].split())})\b", re.IGNORECASE),
            re.compile(rf"\b(?:{'|'.join(each['endings']) or '(?!)'})\b"),
        )
        for name, each in given.items()
    }


def _letters(letters: str) -> str:
    return f"[{letters}]|" if letters else ""
