"""The features of a message that say whether it is worth keeping, and the weight of each. Pure.

Each feature is a number from 0 to 1 that a reader can check by hand. Their weighted sum gives the confidence. The
weights are round numbers, chosen on three conversations and measured on two others
(`benchmarks/local/bench_local_capture.py`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from beaver_memory.capture.records import Kind
from beaver_memory.capture.sentences import Sentence
from beaver_memory.capture.vocabulary import Vocabulary

FULL = 24
"""Different words with content in a message of full substance."""

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "substance": 4.0,
        "own_substance": 1.5,
        "own": 0.4,
        "event": 0.9,
        "moment": 1.3,
        "amount": 0.3,
        "name": 0.9,
        "attachment": 0.4,
        "phrase": 1.5,
        "answers": 0.5,
        "to_listener": -0.7,
        "question": -0.5,
        "vague": -1.0,
        "praise": -0.6,
    }
)
"""How much each feature says for keeping a message."""

BIAS = -3.3
"""The sum of a message without any feature."""

LEAST = 2
"""Words with content that a phrase needs beside it."""

STRENGTHS: Mapping[Kind, float] = MappingProxyType(
    {"rule": 1.0, "fix": 1.0, "decision": 1.0, "preference": 0.6, "fact": 0.0, "todo": 0.4}
)
"""How much a phrase of each kind says."""

_VOCATIVE = re.compile(r"(?:^|,|\b(?i:hey|hi|hello|thanks|wow|oh|yeah|well))\s+[A-Z]\w+(?=\s*(?:[!?.,]|$))")
_ATTACHED = re.compile(r"\[(?:shares?|image|photo|attached|attachment|file)\b", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Features:
    """The features of a message, each 0 to 1.

    Attributes:
        substance: how many different words with content its statements have.
        own_substance: the same of the sentences in which the speaker speaks of themselves.
        own: the speaker speaks of themselves.
        event: something happened.
        moment: it names a time.
        amount: it names an amount.
        name: it names a person, a place or a product.
        attachment: it comes with a picture or a file.
        phrase: it has a phrase of a kind, or one by which people describe themselves.
        answers: the text before it asks.
        to_listener: how much it speaks to the listener.
        question: it asks.
        vague: how many words of feelings and advice it has.
        praise: how many words of praise, thanks and greeting it has.
    """

    substance: float = 0.0
    own_substance: float = 0.0
    own: float = 0.0
    event: float = 0.0
    moment: float = 0.0
    amount: float = 0.0
    name: float = 0.0
    attachment: float = 0.0
    phrase: float = 0.0
    answers: float = 0.0
    to_listener: float = 0.0
    question: float = 0.0
    vague: float = 0.0
    praise: float = 0.0

    @property
    def confidence(self) -> float:
        """How certain it is that the message is worth keeping, 0 to 1."""
        total = BIAS + sum(weight * getattr(self, name) for name, weight in WEIGHTS.items())
        return 1 / (1 + math.exp(-total))

    @property
    def cues(self) -> tuple[str, ...]:
        """The features that speak for keeping it."""
        return tuple(name for name, weight in WEIGHTS.items() if weight > 0 and getattr(self, name) > 0)


def measured(said: Sequence[Sentence], words: Vocabulary, *, answers: bool = False) -> Features:
    """Return the features of a message from its sentences.

    Args:
        said: the sentences.
        words: of their language.
        answers: whether the text before the message asks.
    """
    statements = " ".join(each.text for each in said if not each.is_question)
    own = " ".join(each.text for each in said if not each.is_question and words.own.search(each.text))
    named = _VOCATIVE.sub(" ", statements)
    return Features(
        substance=_substance(statements, words),
        own_substance=_substance(own, words),
        own=float(bool(own)),
        event=_share(words.event.findall(statements), 2),
        moment=float(words.moment.search(statements) is not None),
        amount=float(words.amount.search(statements) is not None),
        name=_share(_names(named, words), 2),
        phrase=max((phrase_strength(each.text, words) for each in said if not each.is_question), default=0.0),
        answers=float(answers and any(not each.is_question for each in said)),
        attachment=float(_ATTACHED.search(statements) is not None),
        to_listener=_share(words.second.findall(statements), 3),
        question=float(any(each.is_question for each in said)),
        vague=_share(words.vague.findall(statements), 4),
        praise=_share(words.praise.findall(statements), 4),
    )


def kind_of(sentence: str, words: Vocabulary) -> Kind | None:
    """Return the kind that a sentence has the phrase of, or `None`."""
    if len(content_words(sentence, words)) < LEAST * words.characters_per_word:
        return None
    return next((kind for kind, phrase in words.kinds.items() if phrase.search(sentence)), None)


def phrase_strength(sentence: str, words: Vocabulary) -> float:
    """Return how strongly the phrases of a sentence say that it holds beyond the day, 0 to 1."""
    kind = kind_of(sentence, words)
    if kind is not None:
        return STRENGTHS[kind]
    is_profile = words.profile.search(sentence) and len(content_words(sentence, words)) >= LEAST
    return STRENGTHS["preference"] if is_profile else 0.0


def content_words(text: str, words: Vocabulary) -> set[str]:
    """Return the different words of a text that say something by themselves."""
    found = {word.casefold() for word in words.word.findall(text)}
    return {
        word
        for word in found
        if word not in words.common and not words.praise.fullmatch(word) and not words.vague.fullmatch(word)
    }


def _substance(text: str, words: Vocabulary) -> float:
    count = len(content_words(text, words)) / words.characters_per_word
    return min(1.0, math.log1p(count) / math.log1p(FULL))


def _names(text: str, words: Vocabulary) -> set[str]:
    if words.name_ is None:
        return set()
    # A word of praise or a common one is written with a capital by habit only.
    return {name for name in words.name_.findall(text) if content_words(name, words)}


def _share(found: Sequence[object] | set[str], full: int) -> float:
    return min(1.0, len(found) / full)
