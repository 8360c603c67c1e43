"""Parses texts into claims: the subject of a statement, its attributes with their values, and the marks of a change."""

import re
from collections.abc import Iterable, Mapping

import attrs

from beaver_memory.reconcile.vocabulary.reader import Family, Vocabulary, vocabulary

LONGEST = 4_000
"""Characters of a text that are parsed."""

MOST = 40
"""Statements of a text that are parsed."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_GERMAN = re.compile(
    r"[\u00e4\u00f6\u00fc\u00df]|\b(?:ich|ist|der|die|das|und|nicht|mein|meine|wir|unser|unsere|den|dem|auf|zu|bei|von|im|am|ein|eine|hat|habe|f\u00fcr|mit|heisst)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"\b(?:i|the|is|are|my|our|we|and|to|of|in|at|a|an|on|for|with|was|has|have|it|not|am|from|by|does)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:[A-Z][\w-]{0,30}:\s+(?=[A-Z\u4e00-\u9fff]))?")
_ENDS = re.compile(r"(?<=[.!?;])\s+(?=[^\s\d])|[\n\u3002\uff01\uff1f\uff1b]+")
_CLAUSES = re.compile(
    r",\s+(?:(?:and|but|so|und|aber|sondern|denn)\s+)?(?=(?:I|I'm|we|my|our|it|now|ich|wir|mein\w*|unser\w*|jetzt|nun|sondern|das|es)\b)"
    r"|[\uff0c](?=(?:\u6211|\u73b0\u5728|\u800c\u662f|\u6539|\u5982\u4eca))",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"\b[A-Z][\w-]+")
_NUMBER = re.compile(r"\d")


@attrs.frozen(kw_only=True)
class Attribute:
    """An attribute of a subject.

    Attributes:
        subject: the words that name its subject; none for the speaker.
        value: the words of its value, in order.
        of_things: see `Family.of_things`.
    """

    subject: frozenset[str]
    value: tuple[str, ...]
    of_things: bool


@attrs.frozen(kw_only=True)
class Claim:
    """A statement.

    Attributes:
        language: its language.
        words: its words that name a subject or a value, in order.
        names: those that are written with a capital letter; none in German and Chinese.
        own: the speaker speaks of themselves, or of people and things of theirs.
        kin: the people it is about, by their relation to the speaker.
        contrasts: its words that tell things of a kind apart.
        attributes: its attributes, by the name of their family.
        replaced: the words for the thing that was given up.
        changes, additive, ends, past, planned, happened, several: see `Vocabulary`.
    """

    language: str
    words: tuple[str, ...]
    names: frozenset[str] = frozenset()
    own: bool = False
    kin: frozenset[str] = frozenset()
    contrasts: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    changes: bool = False
    additive: bool = False
    ends: bool = False
    past: bool = False
    planned: bool = False
    happened: bool = False
    several: frozenset[str] = frozenset()

    @property
    def content(self) -> frozenset[str]:
        """Its words, each once."""
        return frozenset(self.words)

    @property
    def numbers(self) -> frozenset[str]:
        """Its words with a digit."""
        return frozenset(word for word in self.words if _NUMBER.search(word))


def language_of(text: str) -> str:
    """Return the language of a text: `zh`, `de` or `en`."""
    if _CHINESE.search(text):
        return "zh"
    return "de" if len(_GERMAN.findall(text)) > len(_ENGLISH.findall(text)) else "en"


def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text, at most `MOST`."""
    found = []
    for statement in statements(text):
        claim = _claim(statement)
        if claim.words:
            found.append(claim)
        if len(found) == MOST:
            break
    return tuple(found)


def statements(text: str) -> Iterable[str]:
    """Return the statements of a text, without the mark of its speaker and time; questions are none."""
    for sentence in _ENDS.split(_LABEL.sub("", text[:LONGEST])):
        if sentence.rstrip().endswith(("?", "\uff1f")):
            continue
        for clause in _CLAUSES.split(sentence):
            if clause.strip():
                yield clause.strip(" \t.!;,\u3002")


def search_words(claim: Claim) -> str:
    """Return words by which other statements about the same attributes are found; none if it has no attribute."""
    known = vocabulary(claim.language).families
    found = [family.found_by for family in known if family.name in claim.attributes]
    subjects = [word for each in claim.attributes.values() for word in each.subject]
    return " ".join([*filter(None, found), *subjects])


def _claim(statement: str) -> Claim:
    known = vocabulary(language_of(statement))
    language = known.language
    bare = " ".join(known.asides.sub(" ", statement).split())
    words = tuple(known.words(bare))
    own = known.first_person.search(statement) is not None
    kin = _kin(known, language, statement)
    names = (
        frozenset(known.words(" ".join(_CAPITAL.findall(statement)))) & set(words) if language == "en" else frozenset()
    )
    replaced = _replaced(known, statement)
    return Claim(
        language=language,
        words=words,
        names=names,
        own=own,
        kin=kin,
        contrasts=_contrasts(known, words, statement),
        attributes=dict(_attributes(known, bare, own=own, kin=kin)),
        replaced=replaced,
        changes=known.changes.search(statement) is not None,
        additive=known.additions.search(statement) is not None,
        ends=known.endings.search(statement) is not None,
        past=known.past.search(statement) is not None,
        planned=known.plans.search(statement) is not None,
        happened=known.events.search(statement) is not None,
        several=frozenset(known.words(" ".join(_whole(known.several, statement)))),
    )


def _whole(expression: re.Pattern[str], text: str) -> list[str]:
    return [match[0] for match in expression.finditer(text)]


def _kin(known: Vocabulary, language: str, text: str) -> frozenset[str]:
    if language == "zh":
        return frozenset(name for word, name in known.kin.items() if word in text)
    return frozenset(known.kin[word] for word in re.findall(r"\w+", text.casefold()) if word in known.kin)


def _contrasts(known: Vocabulary, words: Iterable[str], text: str) -> frozenset[str]:
    if known.language == "zh":
        return frozenset(word for word in known.contrasts if len(word) > 1 and word in text)
    return frozenset(words) & known.contrasts


def _replaced(known: Vocabulary, text: str) -> frozenset[str]:
    for expression in known.replacements:
        match = expression.search(text)
        if match is not None and (words := known.words(match["x"])):
            return frozenset(words)
    return frozenset()


def _attributes(known: Vocabulary, bare: str, *, own: bool, kin: frozenset[str]) -> Iterable[tuple[str, Attribute]]:
    for family in known.families:
        match = next(filter(None, (expression.search(bare) for expression in family.patterns)), None)
        if match is None:
            continue
        value = tuple(known.words(match["v"]))
        if value:
            subject = _subject(known, family, match, bare, own=own, kin=kin)
            yield family.name, Attribute(subject=subject, value=value, of_things=family.of_things)


def _subject(
    known: Vocabulary, family: Family, match: re.Match[str], bare: str, *, own: bool, kin: frozenset[str]
) -> frozenset[str]:
    named = match.groupdict()
    inside = " ".join(filter(None, (named.get(key) for key in ("k", "n"))))
    around = f"{bare[: match.start()]} | {bare[match.end() :]}"
    words = frozenset(known.words(inside))
    rest = frozenset(known.words(known.changes.sub(" ", around)))
    if family.of_things:
        return words | rest
    if own and not kin:
        return words | (rest & known.contrasts)
    return words | rest | kin
