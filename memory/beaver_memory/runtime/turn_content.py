"""The content of a queued turn: its messages and what belongs to them, and their form in the queue. Pure."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import attrs
from attrs import field

from beaver_memory.capture.features import content_words
from beaver_memory.capture.outcomes import ToolOutcome
from beaver_memory.capture.records import Utterance
from beaver_memory.capture.rules import asked_among
from beaver_memory.capture.sentences import LONGEST, sentences, without_private
from beaver_memory.capture.vocabulary import vocabulary_of
from beaver_toolkit.redaction.redactor import Redactor

_ECHO = 0.8
"""The share of words in common with recalled sentences from which a statement counts as recalled."""


class Unreadable(Exception):
    """The content of a row is not that of a turn."""


def _said(values: Iterable[Utterance]) -> tuple[Utterance, ...]:
    return tuple(values)


def _recalled(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _counts(values: Mapping[str, int]) -> dict[str, int]:
    return dict(values)


def _outcomes(values: Iterable[ToolOutcome]) -> tuple[ToolOutcome, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class TurnContent:
    """What capture needs of a turn.

    Attributes:
        said: the messages, in order, with those before them that help to understand them.
        outcomes: how its tools ended, in order.
        recalled: the statements among its messages that the host had injected.
        redacted: how many secrets of each kind were left out.
    """

    said: tuple[Utterance, ...] = field(converter=_said, repr=False)
    outcomes: tuple[ToolOutcome, ...] = field(default=(), converter=_outcomes)
    recalled: tuple[str, ...] = field(default=(), converter=_recalled, repr=False)
    redacted: Mapping[str, int] = field(factory=dict, converter=_counts)

    @classmethod
    def of_turn(
        cls,
        said: Iterable[Utterance],
        outcomes: Iterable[ToolOutcome],
        was_injected: Callable[[str], bool],
        redactor: Redactor,
    ) -> "TurnContent":
        """Return the content of a turn: bounded, and without private spans and secrets.

        Args:
            said: the messages.
            outcomes: how its tools ended.
            was_injected: whether the host injected a text; only the process of the turn can tell.
            redactor: finds secrets.
        """
        counts = Counter[str]()

        def plain(text: str) -> str:
            done = redactor.redact(without_private(text)[:LONGEST])
            counts.update({each.kind: each.count for each in done.findings})
            return done.text

        clean = [attrs.evolve(each, text=plain(each.text)) for each in said]
        recalled = [each for text in clean if not text.is_context for each in _statements(text) if was_injected(each)]
        tools = [
            attrs.evolve(each, command=plain(each.command), files=tuple(map(plain, each.files))) for each in outcomes
        ]
        return cls(said=clean, outcomes=tools, recalled=recalled, redacted=counts)

    def dated(self, when: datetime) -> "TurnContent":
        """Return the content with a time for each message that may be captured and has none."""
        said = (each if each.when or each.is_context else attrs.evolve(each, when=when) for each in self.said)
        return attrs.evolve(self, said=said)

    @property
    def text(self) -> str:
        """The content as JSON."""
        return json.dumps(attrs.asdict(self), ensure_ascii=False, separators=(",", ":"), default=datetime.isoformat)

    @classmethod
    def of_text(cls, text: str) -> "TurnContent":
        """Return the content from JSON.

        Raises:
            Unreadable: it is none.
        """
        try:
            found = json.loads(text)
            return cls(
                said=[_utterance(each) for each in found["said"]],
                outcomes=[ToolOutcome(**each) for each in found["outcomes"]],
                recalled=found["recalled"],
                redacted=found["redacted"],
            )
        except (ValueError, TypeError, KeyError) as error:
            raise Unreadable from error


def joined(contents: Iterable[TurnContent]) -> TurnContent:
    """Return the contents of consecutive turns as one; a message that several have as context is there once."""
    each = [*contents]
    said = dict.fromkeys(text for content in each for text in content.said)
    return TurnContent(
        # The answer to a question comes right after it, so texts from outside come first.
        said=sorted(said, key=lambda text: not text.external),
        outcomes=(outcome for content in each for outcome in content.outcomes),
        recalled=(text for content in each for text in content.recalled),
        redacted=sum((Counter(content.redacted) for content in each), Counter[str]()),
    )


def recalled_test(recalled: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a statement consists of recalled ones."""
    known = frozenset(word for text in recalled for word in content_words(text, vocabulary_of(text)))

    def was_recalled(text: str) -> bool:
        ours = content_words(text, vocabulary_of(text)) if known else frozenset()
        return bool(ours) and len(ours & known) >= _ECHO * len(ours)

    return was_recalled


def _statements(said: Utterance) -> list[str]:
    """Return the sentences of a message, and what the user asks to remember in them."""
    found = sentences(said.text)
    return [*(each.text for each in found), *asked_among(found, said.text)]


def _utterance(fields: dict[str, Any]) -> Utterance:
    when = fields["when"]
    return Utterance(**fields | {"when": None if when is None else datetime.fromisoformat(when)})
