"""Extractors that ask a language model: alone, or beside the rules. Both fall back to rules, and say so."""

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from beaver_hostspecs import Clock
from beaver_memory.capture.contract import AnswerError, candidates_of, question
from beaver_memory.capture.gates.budget import BudgetGate
from beaver_memory.capture.records import Candidate, Extraction, Utterance
from beaver_memory.capture.rules import EXTRACTED, RuleExtractor
from beaver_memory.capture.vocabulary import vocabulary_of

Ask = Callable[[str], object]
"""Sends a text to a model and returns its answer; it keeps to its own deadline and raises if it fails."""

CHARACTERS_PER_TOKEN = 4


class Extractor(Protocol):
    """Finds candidates."""

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation, in order."""


class ModelExtractor:
    """Finds candidates by a model's answer; rules answer in its place if it fails, or if its budget is spent.

    Args:
        ask: asks the model.
        budget: counts the calls.
        clock: the source of time.
        rules: the rules.
    """

    def __init__(self, ask: Ask, budget: BudgetGate, clock: Clock, *, rules: RuleExtractor | None = None) -> None:
        self._ask, self._budget, self._clock = ask, budget, clock
        self._rules = rules or RuleExtractor()

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation."""
        if not any(_is_source(each) for each in said):
            return Extraction(extractor="model")
        if not self._budget.may_ask(self._clock.now()):
            return self._fallen_back(said, "model_budget_spent")
        asked = question(said)
        try:
            answer = self._ask(asked)
            found = [each for each in candidates_of(answer, said) if _is_source(said[each.place])]
        except AnswerError as error:
            return self._fallen_back(said, error.reason, self._counted(asked, ""))
        except Exception as error:  # noqa: BLE001 - a model fails in every way; the reason is in the result
            return self._fallen_back(said, f"model_failed_{type(error).__name__}", self._counted(asked, ""))
        tokens = self._counted(asked, str(answer))
        return Extraction(candidates=found, extractor="model", calls=1, tokens=tokens)

    def _counted(self, asked: str, answer: str) -> int:
        tokens = (len(asked) + len(answer)) // CHARACTERS_PER_TOKEN
        self._budget.asked(self._clock.now(), tokens)
        return tokens

    def _fallen_back(self, said: Sequence[Utterance], reason: str, tokens: int = 0) -> Extraction:
        return attrs.evolve(self._rules.extract(said), fallback=reason, calls=int(bool(tokens)), tokens=tokens)


class HybridExtractor:
    """Finds candidates by a model, and adds what the rules are sure of and the model left out.

    Args:
        model: the model.
        rules: the rules.
        least_confidence: of a candidate of the rules that is added.
    """

    def __init__(
        self, model: ModelExtractor, *, rules: RuleExtractor | None = None, least_confidence: float = 0.75
    ) -> None:
        self._model, self._least = model, least_confidence
        self._rules = rules or RuleExtractor()

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation."""
        found = self._model.extract(said)
        if found.fallback is not None:
            return found
        sure = [
            each for each in self._rules.extract(said).candidates if each.explicit or each.confidence >= self._least
        ]
        missing = [
            each for each in sure if each.explicit or not any(_covers(other, each) for other in found.candidates)
        ]
        return attrs.evolve(found, candidates=(*missing, *found.candidates), extractor="hybrid")


def _is_source(said: Utterance) -> bool:
    return said.voice in EXTRACTED and not said.is_context


def _covers(found: Candidate, other: Candidate) -> bool:
    """Return whether a candidate of the same text has half of its words in common with another one."""
    if found.place != other.place:
        return False
    words = [set(vocabulary_of(each.text).word.findall(each.text.casefold())) for each in (found, other)]
    return len(words[0] & words[1]) >= len(words[0]) / 2
