"""The data for measuring recall: conversations of LoCoMo in several forms.

The folder that `BEAVER_BENCH_DATA` names holds them. They are never copied.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

FILE = "locomo-dev.json"
CATEGORIES = (1, 2, 3, 4)
_EVIDENCE = re.compile(r"D\d+:\d+")


@attrs.frozen(kw_only=True)
class Item:
    """A memory: its text, and the fields that a host may set."""

    key: str
    text: str
    session: str = ""
    speaker: str = ""
    when: datetime | None = None
    keywords: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Question:
    """A question, and the keys of the memories that answer it."""

    text: str
    evidence: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Case:
    """One user's memories, and the questions about them."""

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]


@attrs.frozen(kw_only=True)
class Turn:
    """A turn of a conversation as it is in the file."""

    key: str
    session: int
    speaker: str
    text: str
    date: str
    when: datetime


@attrs.frozen(kw_only=True)
class Conversation:
    """A conversation and its questions."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def locomo() -> tuple[tuple[Conversation, ...], str] | None:
    """Return the conversations and the file's hash, or `None`, with a printed line, if the file is missing."""
    folder = os.environ.get("BEAVER_BENCH_DATA", "")
    path = Path(folder) / FILE
    if not folder or not path.is_file():
        print(f"LoCoMo is left out: BEAVER_BENCH_DATA names no folder with {FILE}.")
        return None
    raw = path.read_bytes()
    found = tuple(_conversation(f"conversation-{number}", each) for number, each in enumerate(json.loads(raw), 1))
    return found, hashlib.sha256(raw).hexdigest()


def _conversation(name: str, entry: dict[str, Any]) -> Conversation:
    turns = tuple(_turns(entry["conversation"]))
    known = {turn.key for turn in turns}
    questions = []
    for each in entry["qa"]:
        named = [key for text in each["evidence"] for key in _EVIDENCE.findall(text)]
        evidence = tuple(dict.fromkeys(key for key in named if key in known))
        if each["category"] in CATEGORIES and evidence:
            questions.append(Question(text=each["question"], evidence=evidence))
    return Conversation(name=name, turns=turns, questions=tuple(questions))


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    number = 1
    while f"session_{number}" in conversation:
        date = conversation[f"session_{number}_date_time"]
        began = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for place, turn in enumerate(conversation[f"session_{number}"]):
            caption = turn.get("blip_caption")
            yield Turn(
                key=turn["dia_id"],
                session=number,
                speaker=turn["speaker"],
                text=f"{turn['text']} [shares {caption}]" if caption else turn["text"],
                date=date,
                when=began + timedelta(seconds=30 * place),
            )
        number += 1


def with_fields(conversation: Conversation) -> Case:
    """Return each turn as one memory `[date] speaker: text`, with session, speaker and time given as fields too."""
    items = tuple(
        Item(
            key=turn.key,
            text=f"[{turn.date}] {turn.speaker}: {turn.text}",
            session=f"s{turn.session}",
            speaker=turn.speaker,
            when=turn.when,
        )
        for turn in conversation.turns
    )
    return Case(name=conversation.name, items=items, questions=conversation.questions)


def line_only(conversation: Conversation) -> Case:
    """Return the same lines without fields, as from a host that sets only the text."""
    case = with_fields(conversation)
    items = tuple(Item(key=item.key, text=item.text) for item in case.items)
    return attrs.evolve(case, items=items)


def text_only(conversation: Conversation) -> Case:
    """Return the texts of the turns, with the ids of their sessions only."""
    items = tuple(Item(key=turn.key, text=turn.text, session=f"s{turn.session}") for turn in conversation.turns)
    return Case(name=conversation.name, items=items, questions=conversation.questions)


def digest(cases: tuple[Case, ...]) -> str:
    """Return a hash of sets, so that two runs can be compared."""
    return hashlib.sha256(repr(cases).encode()).hexdigest()
