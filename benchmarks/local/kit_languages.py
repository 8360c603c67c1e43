"""The same made-up conversations in English, German and Chinese, with 200 questions each.

One plan fixes the facts, persons, dates and distractors, and their order; the files in `languages/` hold the texts of
each language. Two users are two halves: their facts differ, and every text of the second half has another phrasing, so
that a choice on one half can be measured on the other. The user tells each fact of three persons, and asks about two of
them.
"""

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
from kit_data import Case, Item, Question

LANGUAGES = ("English", "German", "Chinese")
SEED = 20261120
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TABLES = ("who", "own", "list", "rule")
PERSONS = 3
"""Persons with the same kind of fact."""

ASKED = 2
"""Of these, the persons in the questions."""

TOGETHER = 6
"""Threads of a session."""

_FOLDER = Path(__file__).parent / "languages"
_FORMS = ("n", "g", "d", "a", "name")
_NUMERALS = "一二三四五六七八九十"

Texts = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Thread:
    """A fact or a remark of the user, and the answer of the assistant.

    Attributes:
        table, kind: where the languages have its texts; `small` has no kinds.
        place: which person, statement of a list, or remark.
        person: the person's place among the persons, or -1.
        month, day: the date, if the text has one.
        opener, closer: the remarks around the assistant's answer.
    """

    table: str
    kind: str = ""
    place: int
    person: int = -1
    month: int
    day: int
    opener: int
    closer: int


def texts_of(language: str) -> Texts:
    """Return the texts of a language."""
    return tomllib.loads((_FOLDER / f"{language.lower()}.toml").read_text("utf-8"))


def conversations(language: str) -> tuple[Case, ...]:
    """Return the two halves in a language, the same in every run."""
    texts = texts_of(language)
    return tuple(_case(language, texts, half, plan(texts, half)) for half in (0, 1))


def plan(texts: Texts, half: int) -> list[Thread]:
    """Return the threads of a half in order; they depend on the kinds alone, which all languages share."""
    dice = random.Random(SEED + half)
    found = [
        thread
        for table in TABLES
        for kind in sorted(texts[table])
        for thread in _threads(dice, table, kind, len(texts["people"]))
    ]
    found += [_thread(dice, "small", "", place) for place in range(len(texts["small"]))]
    dice.shuffle(found)
    return found


def about(texts: Texts, half: int, table: str, kind: str, person: int = 0) -> tuple[list[str], str]:
    """Return the user's statements of one kind in a half, about a person and on one date, and the question."""
    person = person % len(texts["people"]) if table == "who" else -1
    thread = Thread(table=table, kind=kind, place=0, person=person, month=2, day=5, opener=0, closer=0)
    known = texts[table][kind]
    said = [part.split(" // ")[0] for part in known["said"][half].split("|")]
    return [_said(texts, thread, half, each) for each in said], _said(texts, thread, half, known["ask"][half])


def _threads(dice: random.Random, table: str, kind: str, people: int) -> list[Thread]:
    if table == "who":
        persons = dice.sample(range(people), PERSONS)
        return [_thread(dice, table, kind, place, person) for place, person in enumerate(persons)]
    return [_thread(dice, table, kind, place) for place in range(3 if table == "list" else 1)]


def _thread(dice: random.Random, table: str, kind: str, place: int, person: int = -1) -> Thread:
    # Answers of one kind begin differently, so that no two of them are the same.
    return Thread(
        table=table,
        kind=kind,
        place=place,
        person=person,
        month=dice.randrange(12),
        day=dice.randrange(1, 29),
        opener=3 * dice.randrange(3) + place % 3,
        closer=dice.randrange(7),
    )


def _case(language: str, texts: Texts, half: int, threads: Sequence[Thread]) -> Case:
    items: list[Item] = []
    evidence: dict[tuple[str, str, int], list[str]] = {}
    for place, thread in enumerate(threads):
        for turn, (speaker, text) in enumerate(_turns(texts, thread, half)):
            key = f"{place}-{turn}"
            when = START + timedelta(days=2 * (place // TOGETHER), minutes=len(items))
            session = f"s{place // TOGETHER}"
            items.append(Item(key=key, text=text, session=session, speaker=speaker, when=when))
            if speaker == "user":
                about = 0 if thread.table == "list" else thread.place
                evidence.setdefault((thread.table, thread.kind, about), []).append(key)
    known = {(each.table, each.kind, each.place): each for each in threads}
    questions = tuple(
        Question(text=_said(texts, known[where], half, texts[where[0]][where[1]]["ask"][half]), evidence=tuple(keys))
        for where, keys in sorted(evidence.items())
        if where[0] in TABLES and where[2] < ASKED
    )
    return Case(name=f"{language}, half {half + 1}", items=tuple(items), questions=questions)


def _turns(texts: Texts, thread: Thread, half: int) -> Iterator[tuple[str, str]]:
    """Yield the speakers and texts of a thread."""
    known = {} if thread.table == "small" else texts[thread.table][thread.kind]
    said = known["said"][half] if known else texts["small"][thread.place]
    if thread.table == "list":
        said = said.split("|")[thread.place]
    for turn, text in enumerate(said.split(" // ")):
        yield ("assistant" if turn % 2 else "user"), _said(texts, thread, half, text)
    answer = (texts["openers"][thread.opener], known.get("reply", ""), texts["closers"][thread.closer])
    between = " " if texts["dates"][0].isascii() else ""
    yield "assistant", between.join(filter(None, answer))


def _said(texts: Texts, thread: Thread, half: int, text: str) -> str:
    """Return a text about the person, the value and the date of a thread."""
    slots = {"date": _date(texts, thread, half)}
    if thread.person >= 0:
        slots |= zip(_FORMS, texts["people"][thread.person].split("|"), strict=True)
        values = texts["who"][thread.kind].get("x")
        slots["x"] = values[PERSONS * half + thread.place] if values else ""
    filled = text.format(**slots)
    return filled[0].upper() + filled[1:]


def _date(texts: Texts, thread: Thread, half: int) -> str:
    month, form = texts["months"][thread.month], texts["dates"][half]
    return str(form.format(month=month, day=thread.day, number=thread.month + 1, numeral=_numeral(thread.day)))


def _numeral(number: int) -> str:
    """Return a number below a hundred in Chinese."""
    tens, ones = divmod(number, 10)
    ten = ("" if tens == 1 else _NUMERALS[tens - 1]) + "十" if tens else ""
    return ten + (_NUMERALS[ones - 1] if ones else "")
