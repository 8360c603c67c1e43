"""The records of capture: the texts of a turn, and the candidates that extractors find in them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, get_args

import attrs
from attrs import field
from attrs.validators import and_, ge, in_, instance_of, le

Kind = Literal["preference", "rule", "decision", "fact", "fix", "todo"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The types of captured memories."""

BINDING: frozenset[Kind] = frozenset({"preference", "rule"})
"""Kinds that steer the agent later: text of external origin becomes one of them only by a person's approval."""

Voice = Literal["user", "assistant", "tool", "document"]

_share: Any = and_(instance_of((int, float)), ge(0), le(1))

LONGEST = 1_000
"""Characters of a candidate."""


@attrs.frozen(kw_only=True)
class Utterance:
    """A text of one voice in a turn.

    Attributes:
        text: the text, as it was said.
        voice: whose text it is.
        turn: the id of the turn.
        when: when it was said.
        speaker: the name of the speaker, if the host knows it.
        external: the text comes from outside, so neither the user nor the host wrote it.
        is_context: it was captured before, or must not be, and only helps to understand the texts after it.
    """

    text: str = field(validator=instance_of(str), repr=False)
    voice: Voice = field(default="user", validator=in_(get_args(Voice)))
    turn: str = ""
    when: datetime | None = None
    speaker: str = ""
    external: bool = False
    is_context: bool = False


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class Candidate:
    """A memory that an extractor proposes.

    Attributes:
        kind: its kind.
        text: the statement, in the speaker's own words.
        confidence: how certain it is that the statement is worth keeping, 0 to 1.
        cues: the features that speak for it, by name and without content.
        explicit: the user asked for it to be remembered.
        steers_agent: it tells the agent how to behave.
        external: it comes from outside.
        keywords: words of the question that it answers, by which searches find it too.
        place: the number of the utterance that it rests on.
        extractor: what found it: `rules` or `model`.
    """

    kind: Kind = field(validator=in_(KINDS))
    text: str = field(validator=instance_of(str), repr=False)
    confidence: float = field(validator=_share)
    cues: tuple[str, ...] = ()
    explicit: bool = False
    steers_agent: bool = False
    external: bool = False
    keywords: tuple[str, ...] = field(default=(), converter=_texts, repr=False)
    place: int = 0
    extractor: Literal["rules", "model"] = "rules"


def _candidates(values: Iterable[Candidate]) -> tuple[Candidate, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class Extraction:
    """What an extractor found.

    Attributes:
        candidates: the candidates, the most certain first.
        weak: sentences of the user that are worth keeping only if they change a memory.
        extractor: `rules`, `model` or `hybrid`.
        fallback: why rules answered in place of the model, in one word, or `None`.
    """

    candidates: tuple[Candidate, ...] = field(default=(), converter=_candidates)
    weak: tuple[Candidate, ...] = field(default=(), converter=_candidates)
    extractor: Literal["rules", "model", "hybrid"] = "rules"
    fallback: str | None = None
