"""Splits texts into statements, and parses them into claims."""

import re
from collections.abc import Iterable
from functools import lru_cache

from beaver_memory.reconcile.claim import NO_CLAIM, Attribute, Claim
from beaver_memory.reconcile.vocabulary.reader import Family, Vocabulary, language_of, vocabulary
from beaver_memory.reconcile.vocabulary.word_forms import pairs_of

LONGEST = 4_000
"""Characters of a text that are parsed."""

_LABEL = re.compile(r"^\s*(?:\[[^\]]{0,60}\]\s*)?(?:[A-Z][\w-]{0,30}:\s+(?=[A-Z\u4e00-\u9fff]))?")
_ABBREVIATIONS = "".join(rf"(?<!\b{each}\.)" for each in ("Dr", "Mr", "Ms", "Mrs", "St", "No", "Nr")) + r"(?<!\d\.)"
_ENDS = re.compile(_ABBREVIATIONS + r"(?<=[.!?;])\s+(?=[^\s\d])|[\n\u3002\uff01\uff1f\uff1b]+")
_CLAUSES = re.compile(
    r",\s+(?:(?:and|but|so|und|aber|sondern|denn)\s+)?(?=(?:I|I'm|we|it|now|ich|wir|jetzt|nun|sondern|das|es)\b)"
    r"|\uff0c(?=\u6211)",
    re.IGNORECASE,
)
_HELD = re.compile(
    r"\b(?:if|unless|wenn|falls)\b|\u5982\u679c|\u8981\u662f|\u5047\u5982|[\"\u201c\u201e\u00ab\u300c]", re.IGNORECASE
)
"""Marks of a condition or of quoted speech: its clauses say something only together."""

LONGEST_STATEMENT = 240
"""Characters of a statement that is parsed; a longer one says more than one thing."""

MOST = 12
"""Statements of a text that are parsed."""

KNOWN = 4_096
"""Texts whose claims are kept: the candidates of one memory are often those of the next."""

_CLAUSE_ENDS = re.compile(r"[,;\uff0c]|\b(?:and|but|und|aber)\b")
_DIGIT = re.compile(r"\d")


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


def search_words(claim: Claim) -> str:
    """Return words by which other statements about the same attributes are found; none if it has no attribute."""
    subjects = [word for each in claim.attributes.values() for word in each.subject]
    return " ".join([*keywords_of(claim), *subjects])


def strong_words(text: str) -> frozenset[str]:
    """Return the words of any text, for example a question, that are not in statements about anything."""
    known = vocabulary(language_of(text))
    return (
        known.topics(text[:LONGEST]) if known.language == "zh" else frozenset(known.words(text[:LONGEST])) - known.weak
    )


def keywords_of(claim: Claim) -> tuple[str, ...]:
    """Return other words for the attributes of a statement."""
    known = vocabulary(claim.language).families
    found = [family.found_by.split() for family in known if family.name in claim.attributes]
    return tuple(dict.fromkeys(word for words in found for word in words))


def _claim(statement: str) -> Claim:
    known = vocabulary(language_of(statement))
    bare = " ".join(known.asides.sub(" " if known.language != "zh" else "", statement).split())
    unmarked = known.changes.sub(" ", bare)
    words = tuple(known.words(unmarked) or known.words(bare))
    own, kin = known.first_person.search(statement) is not None, known.kin_in(statement)
    names = frozenset(known.words(" ".join(known.names.findall(statement)))) & set(words)
    topics = known.topics(unmarked)
    return Claim(
        language=known.language,
        words=words,
        topics=topics,
        strong=topics if known.language == "zh" else frozenset(words) - known.weak,
        denies=known.endings.search(known.plain.sub(" ", statement)) is None
        and known.endings.search(statement) is not None,
        sequence=tuple(pairs_of(unmarked, known.idle)) if known.language == "zh" else (),
        modifiers=known.modifiers(known.changes.sub(" | ", bare)),
        relation=_relation(known, statement),
        perfect=known.perfect.search(statement) is not None,
        kinds={word: known.kinds[word] for word in words if word in known.kinds},
        subject=_subject_name(known, statement, names),
        renewed=frozenset(word for match in known.newness.finditer(statement) for word in known.words(match["x"])),
        role=known.roles.search(bare) is not None,
        changes_otherwise=known.changes.search(known.newness.sub(" ", statement)) is not None,
        kept=frozenset(known.words(known.endings.sub(" ", unmarked))),
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
        parts=_parts(known, bare),
        habit=known.actors.search(bare) is not None and known.weekdays.search(bare) is not None,
        several=frozenset(known.words(" ".join(match[0] for match in known.several.finditer(statement)))),
        **_marks(known, statement, bare),
    )


def _parts(known: Vocabulary, bare: str) -> tuple[frozenset[str], ...]:
    lists = (match for expression in known.coordinations for match in expression.finditer(bare))
    members = (each for match in lists for each in (*match["x"].split(","), match["y"]))
    return tuple(filter(None, (frozenset(known.words(each)) for each in members)))


def _relation(known: Vocabulary, statement: str) -> int | None:
    found = [number for number, expression in enumerate(known.relations) if expression.search(statement)]
    return found[0] if len(found) == 1 else None


def _subject_name(known: Vocabulary, statement: str, names: frozenset[str]) -> str:
    first = known.words(statement)[:1]
    return first[0] if first and first[0] in names and known.names.match(statement) else ""


def _marks(known: Vocabulary, statement: str, bare: str) -> dict[str, bool]:
    found = {"changes": known.changes, "switches": known.switches, "ends": known.endings, "happened": known.events}
    marks = {name: expression.search(statement) is not None for name, expression in found.items()}
    # "I'm moving to Porto next month": the time is an aside.
    quoted = any(expression.search(statement) for expression in (known.quotes, known.scheduled))
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
        if not known.clues.allow(family.clues, bare):
            continue
        for match in filter(None, (expression.search(bare) for expression in family.patterns)):
            if value := tuple(known.words(match["v"])):
                subject = _subject(known, family, match, own=own, kin=kin)
                yield (
                    family.name,
                    Attribute(
                        subject=subject,
                        value=value,
                        of_things=family.of_things,
                        marked=family.marked,
                        described=family.descriptions.search(f"{bare[match.start() : match.start('v')]}|{match['v']}")
                        is not None,
                        ending=family.endings.search(bare) is not None,
                    ),
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


def statements(text: str, *, whole: bool = False) -> Iterable[str]:
    """Yield the statements of a text, without the mark of its speaker and time; questions are none."""
    for sentence in _ENDS.split(_LABEL.sub("", text[:LONGEST])):
        if sentence.rstrip().endswith(("?", "\uff1f")):
            continue
        for clause in [sentence] if whole or _HELD.search(sentence) else _CLAUSES.split(sentence):
            if clause.strip():
                yield clause.strip(" \t.!;,\u3002")
