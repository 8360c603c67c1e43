"""Extractors that ask a language model: alone, or beside the rules. Both fall back to rules, and say so."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from beaver_memory.capture.contract import AnswerError, candidates_of, question
from beaver_memory.capture.gates.budget import Ask, BudgetSpentError
from beaver_memory.capture.model_breaker import ModelPausedError, category_of
from beaver_memory.capture.records import Candidate, Extraction, Utterance
from beaver_memory.capture.rules import EXTRACTED, RuleExtractor
from beaver_memory.capture.vocabulary import vocabulary_of


class Extractor(Protocol):
    """Finds candidates."""

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation, in order."""


class ModelExtractor:
    """Finds candidates by a model's answer; rules answer in its place if it fails, or if its budget is spent.

    Args:
        ask: asks the model, and counts its calls.
        rules: the rules.
    """

    def __init__(self, ask: Ask, *, rules: RuleExtractor | None = None) -> None:
        self._ask = ask
        self._rules = rules or RuleExtractor()

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation."""
        if not any(_is_source(each) for each in said):
            return Extraction(extractor="model")
        try:
            found = [each for each in candidates_of(self._ask(question(said)), said) if _is_source(said[each.place])]
        except BudgetSpentError:
            return self._fallen_back(said, "model_budget_spent")
        except AnswerError as error:
            return self._fallen_back(said, error.reason)
        except ModelPausedError as error:
            return self._fallen_back(said, f"model_paused: {error.category}")
        except Exception as error:  # noqa: BLE001 - a model fails in every way; the reason is in the result
            return self._fallen_back(said, f"model_failed: {category_of(error)}")
        return Extraction(candidates=found, extractor="model")

    def _fallen_back(self, said: Sequence[Utterance], reason: str) -> Extraction:
        return attrs.evolve(self._rules.extract(said), fallback=reason)


class WithoutModel:
    """Finds candidates by rules, and says so: a model is configured, and the host has none.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: RuleExtractor) -> None:
        self._rules = rules

    def extract(self, said: Sequence[Utterance]) -> Extraction:
        """Return the candidates in the texts of a conversation."""
        return attrs.evolve(self._rules.extract(said), fallback="no_model")


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
