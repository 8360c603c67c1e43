"""Parses texts into claims: the subject of a statement, its attributes with their values, and the marks of a change."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import attrs

from beaver_memory.reconcile.vocabulary.reader import Family, Vocabulary, vocabulary
from beaver_memory.reconcile.vocabulary.word_forms import pairs_of

LONGEST = 4_000
"""Characters of a text that are parsed."""

LONGEST_STATEMENT = 240
"""Characters of a statement that is parsed; a longer one says more than one thing."""

MOST = 12
"""Statements of a text that are parsed."""

KNOWN = 4_096
"""Texts whose claims are kept: the candidates of one memory are often those of the next."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_GERMAN = re.compile(
    r"[\u00e4\u00f6\u00fc\u00df]|\b(?:ich|du|mich|mir|uns|unter|jetzt|neue|neuer|neues|wohnt|lebt|gezogen|nach|seit|kein|keine|als|wurde|sind|war|sich|um|vom|zum|zur|beim|ist|der|die|das|und|nicht|mein|meine|wir|unser|unsere|hat|habe|haben|kein|keinen|auch|noch|sehr|gern|wird|werden|l\u00e4uft|laufen|montags|dienstags|mittwochs|donnerstags|freitags|samstags|bin|bist|seid|wenn|oder|aber|aus|beim|mal|mehr|den|dem|auf|zu|bei|von|im|am|ein|eine|hat|habe|f\u00fcr|mit|heisst)\b",
    re.IGNORECASE,
)
_GERMAN_ENDINGS = re.compile(
    r"\b(?:unser\w+|mein\w+|sein\w+|ihr\w+|ein\w+|\w+(?:ung|keit|heit|lich|ieren)"
    r"|(?!seven|open|often|even|when|then|been|taken|listen|happen)[a-z]{3,}en)\b"
)
_ENGLISH = re.compile(
    r"\b(?:i|i'm|the|is|are|my|our|we|and|to|of|at|a(?= )|on|for|with|has|have|it|not|from|by|does|now|used|they|he|she"
    r"|this|that|these|us|was|were|been|got|an|as|every|more|who|which|all|out|up|down|me|him|them|his|her|their|your|you|and"
    r"|but|just|took|goes|go|per)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:[A-Z][\w-]{0,30}:\s+(?=[A-Z\u4e00-\u9fff]))?")
_ABBREVIATIONS = "".join(rf"(?<!\b{each}\.)" for each in ("Dr", "Mr", "Ms", "Mrs", "St", "No", "Nr")) + r"(?<!\d\.)"
_ENDS = re.compile(_ABBREVIATIONS + r"(?<=[.!?;])\s+(?=[^\s\d])|[\n\u3002\uff01\uff1f\uff1b]+")
_CLAUSES = re.compile(
    r",\s+(?:(?:and|but|so|und|aber|sondern|denn)\s+)?(?=(?:I|I'm|we|it|now|ich|wir|jetzt|nun|sondern|das|es)\b)"
    r"|\uff0c(?=\u6211)",
    re.IGNORECASE,
)
_CLAUSE_ENDS = re.compile(r"[,;\uff0c]|\b(?:and|but|und|aber)\b")
_HELD = re.compile(
    r"\b(?:if|unless|wenn|falls)\b|\u5982\u679c|\u8981\u662f|\u5047\u5982|[\"\u201c\u201e\u00ab\u300c]", re.IGNORECASE
)
"""Marks of a condition or of quoted speech: its clauses say something only together."""

_DIGIT = re.compile(r"\d")


@attrs.frozen(kw_only=True)
class Attribute:
    """An attribute of a subject.

    Attributes:
        subject: the words that name its subject; none for the speaker.
        value: the words of its value, in order.
        of_things, marked: see `Family`.
    """

    subject: frozenset[str]
    value: tuple[str, ...]
    of_things: bool
    marked: bool = False


@attrs.frozen(kw_only=True)
class Claim:
    """A statement.

    Attributes:
        language: its language.
        words: its words that name a subject or a value, in order.
        kept: those that are no mark of an end.
        names: those that are names of people or things, as far as the language shows it.
        numbers: those that are numbers.
        topics: what it is about; see `Vocabulary.topics`.
        kinds: the kinds of its words that have one; see `Vocabulary.kinds`.
        subject: the name with which it begins, or an empty text.
        renewed: the words for the thing that it calls new.
        role: it says who has a role that one person has at a time.
        own: the speaker speaks of themselves, or of people and things of theirs.
        kin: the people it is about, by their relation to the speaker.
        contrasts: its words that tell things of a kind apart.
        attributes: its attributes, by the name of their family.
        replaced: the words for the thing that was given up.
        strong: its words but for those that are in statements about anything; of Chinese, its topics.
        sequence: its topics in order, if it is Chinese.
        modifiers: what stands directly before each of its topics; see `Vocabulary.modifiers`.
        relation: whether it says what its subject has (0) or is (1); `None` for anything else, or for both.
        denies: it denies something, and does not say that it has ended.
        perfect: see `Vocabulary`.
        conditions, purposes, places: the words that tell when, for what and where it holds; see `Vocabulary`.
        habit: it says what the speaker does on a day of the week.
        changes_otherwise: it has a mark of a change beside that something is new.
        changes, switches, additive, ends, past, planned, happened, several: see `Vocabulary`; the words of another speaker count
            as planned.
    """

    language: str
    words: tuple[str, ...]
    kept: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    kinds: Mapping[str, str] = attrs.field(factory=dict)
    subject: str = ""
    renewed: frozenset[str] = frozenset()
    role: bool = False
    own: bool = False
    kin: frozenset[str] = frozenset()
    contrasts: frozenset[str] = frozenset()
    attributes: Mapping[str, Attribute] = attrs.field(factory=dict)
    replaced: frozenset[str] = frozenset()
    strong: frozenset[str] = frozenset()
    sequence: tuple[str, ...] = ()
    modifiers: Mapping[str, str] = attrs.field(factory=dict)
    relation: int | None = None
    denies: bool = False
    perfect: bool = False
    conditions: frozenset[str] = frozenset()
    purposes: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    habit: bool = False
    changes_otherwise: bool = False
    changes: bool = False
    switches: bool = False
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


NO_CLAIM = Claim(language="en", words=())
"""Stands for a statement that is too long."""


def language_of(text: str) -> str:
    """Return the language of a text: `zh`, `de` or `en`."""
    if _CHINESE.search(text):
        return "zh"
    return (
        "de" if len(_GERMAN.findall(text)) + len(_GERMAN_ENDINGS.findall(text)) > len(_ENGLISH.findall(text)) else "en"
    )


@lru_cache(maxsize=KNOWN)
def claims_of(text: str, *, whole: bool = False) -> tuple[Claim, ...]:
    """Return the claims of a text, at most `MOST`; a long statement is none.

    Args:
        text: the text.
        whole: whether a sentence of several clauses is one statement.
    """
    found = []
    for statement in statements(text, whole=whole):
        claim = _claim(statement) if len(statement) <= LONGEST_STATEMENT else NO_CLAIM
        if claim.words or claim is NO_CLAIM:
            found.append(claim)
        if len(found) == MOST:
            break
    return tuple(found)


def statements(text: str, *, whole: bool = False) -> Iterable[str]:
    """Yield the statements of a text, without the mark of its speaker and time; questions are none."""
    for sentence in _ENDS.split(_LABEL.sub("", text[:LONGEST])):
        if sentence.rstrip().endswith(("?", "\uff1f")):
            continue
        for clause in [sentence] if whole or _HELD.search(sentence) else _CLAUSES.split(sentence):
            if clause.strip():
                yield clause.strip(" \t.!;,\u3002")


def search_words(claim: Claim) -> str:
    """Return words by which other statements about the same attributes are found; none if it has no attribute."""
    subjects = [word for each in claim.attributes.values() for word in each.subject]
    return " ".join([*keywords_of(claim), *subjects])


def keywords_of(claim: Claim) -> tuple[str, ...]:
    """Return other words for the attributes of a statement."""
    known = vocabulary(claim.language).families
    found = [family.found_by.split() for family in known if family.name in claim.attributes]
    return tuple(dict.fromkeys(word for words in found for word in words))


def _claim(statement: str) -> Claim:
    known = vocabulary(language_of(statement))
    bare = " ".join(known.asides.sub(" " if known.language != "zh" else "", statement).split())
    words = tuple(known.words(known.changes.sub(" ", bare)) or known.words(bare))
    own, kin = known.first_person.search(statement) is not None, known.kin_in(statement)
    names = frozenset(known.words(" ".join(known.names.findall(statement)))) & set(words)
    topics = known.topics(known.changes.sub(" ", bare))
    return Claim(
        language=known.language,
        words=words,
        topics=topics,
        strong=topics if known.language == "zh" else frozenset(words) - known.weak,
        denies=known.endings.search(known.plain.sub(" ", statement)) is None
        and known.endings.search(statement) is not None,
        sequence=tuple(pairs_of(known.changes.sub(" ", bare), known.idle)) if known.language == "zh" else (),
        modifiers=known.modifiers(known.changes.sub(" | ", bare)),
        relation=_relation(known, statement),
        perfect=known.perfect.search(statement) is not None,
        kinds={word: known.kinds[word] for word in words if word in known.kinds},
        subject=_subject_name(known, statement, names),
        renewed=frozenset(word for match in known.newness.finditer(statement) for word in known.words(match["x"])),
        role=known.roles.search(bare) is not None,
        changes_otherwise=known.changes.search(known.newness.sub(" ", statement)) is not None,
        kept=frozenset(known.words(known.endings.sub(" ", known.changes.sub(" ", bare)))),
        names=names,
        numbers=frozenset(word for word in words if _DIGIT.search(word) or word in known.numbers),
        own=own,
        kin=kin,
        contrasts=known.contrasts_in(bare),
        attributes=dict(_attributes(known, bare, own=own, kin=kin)),
        replaced=_replaced(known, statement),
        conditions=known.words_found(known.conditions, bare),
        purposes=known.words_found(known.purposes, bare),
        places=known.words_found(known.places, _CLAUSE_ENDS.split(bare)[0]),
        habit=known.actors.search(bare) is not None and known.weekdays.search(bare) is not None,
        several=frozenset(known.words(" ".join(match[0] for match in known.several.finditer(statement)))),
        **_marks(known, statement, bare),
    )


def _relation(known: Vocabulary, statement: str) -> int | None:
    found = [number for number, expression in enumerate(known.relations) if expression.search(statement)]
    return found[0] if len(found) == 1 else None


def _subject_name(known: Vocabulary, statement: str, names: frozenset[str]) -> str:
    first = known.words(statement)[:1]
    return first[0] if first and first[0] in names and known.names.match(statement) else ""


def _marks(known: Vocabulary, statement: str, bare: str) -> dict[str, bool]:
    found = {"changes": known.changes, "switches": known.switches, "ends": known.endings, "happened": known.events}
    marks = {name: expression.search(statement) is not None for name, expression in found.items()}
    quoted = known.quotes.search(statement) is not None
    # Asides such as "if you ask me" look like these.
    found = {"additive": known.additions, "past": known.past, "planned": known.plans}
    marks |= {name: expression.search(bare) is not None for name, expression in found.items()}
    return marks | {"planned": marks["planned"] or quoted}


def _replaced(known: Vocabulary, text: str) -> frozenset[str]:
    for expression in known.replacements:
        match = expression.search(text)
        if match is not None and (words := frozenset(known.words(match["x"])) - known.weak):
            return words
    return frozenset()


def _attributes(known: Vocabulary, bare: str, *, own: bool, kin: frozenset[str]) -> Iterable[tuple[str, Attribute]]:
    for family in known.families:
        for match in filter(None, (expression.search(bare) for expression in family.patterns)):
            if value := tuple(known.words(match["v"])):
                subject = _subject(known, family, match, own=own, kin=kin)
                yield (
                    family.name,
                    Attribute(subject=subject, value=value, of_things=family.of_things, marked=family.marked),
                )
                break


def _subject(
    known: Vocabulary, family: Family, match: re.Match[str], *, own: bool, kin: frozenset[str]
) -> frozenset[str]:
    named, text = match.groupdict(), match.string
    inside = " ".join(filter(None, (named.get(key) for key in ("k", "n"))))
    around = f"{text[: match.start()]} | {inside} | {named.get('g') or ''} | {text[match.end() :]}"
    words = frozenset(known.words(family.triggers.sub(" ", known.changes.sub(" ", around))))
    contrasts = known.contrasts_in(around)
    if own and not kin and not family.of_things:
        return frozenset(known.words(f"{inside} | {_possession(known, family, text[: match.start()])}")) | contrasts
    return words | contrasts | kin


def _possession(known: Vocabulary, family: Family, before: str) -> str:
    """Return the words for a possession of the speaker that has the attribute, as in "My boss moved to Rome"."""
    mine = known.possessives.search(before)
    rest = before[mine.end() :] if mine else ""
    return family.triggers.sub(" ", known.changes.sub(" ", rest))
