"""The budget gate: how much is captured in a turn and in a day, and how much a model may be asked."""

import threading
from collections import Counter
from datetime import UTC, datetime

import attrs
from attrs import field
from attrs.validators import ge

from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import Candidate


@attrs.frozen(kw_only=True)
class Budget:
    """The limits of capture.

    Attributes:
        per_turn: the most memories of a turn.
        per_day: the most memories of an owner in a day.
        model_calls_per_day: the most calls of a model in a day.
        model_tokens_per_day: the most tokens that those calls read and write.
    """

    per_turn: int = field(default=3, validator=ge(0))
    per_day: int = field(default=200, validator=ge(0))
    model_calls_per_day: int = field(default=200, validator=ge(0))
    model_tokens_per_day: int = field(default=200_000, validator=ge(0))


@attrs.frozen(kw_only=True)
class Spent:
    """The cost of models in a day (UTC).

    Attributes:
        calls: of a model.
        tokens: that those calls read and wrote.
    """

    calls: int = 0
    tokens: int = 0


class BudgetGate:
    """Counts captured memories and the cost of models. Thread-safe.

    Args:
        budget: the limits.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._day = ""
        self._kept: Counter[str] = Counter()
        self._spent = Spent()

    def verdict(self, occasion: Occasion, in_turn: int) -> Verdict | None:
        """Return the objection to one more memory, or `None`.

        Args:
            occasion: the turn.
            in_turn: how many memories of the turn are admitted already.
        """
        if in_turn >= self._budget.per_turn:
            return Verdict(gate="budget", reason="turn_full")
        with self._lock:
            self._turn_over(occasion.when)
            full = self._kept[occasion.owner] >= self._budget.per_day
        return Verdict(gate="budget", reason="day_full") if full else None

    def kept(self, occasion: Occasion) -> None:
        """Count one memory of an owner."""
        with self._lock:
            self._turn_over(occasion.when)
            self._kept[occasion.owner] += 1

    def may_ask(self, now: datetime) -> bool:
        """Return whether a model may be asked."""
        with self._lock:
            self._turn_over(now)
            spent, most = self._spent, self._budget
            return spent.calls < most.model_calls_per_day and spent.tokens < most.model_tokens_per_day

    def asked(self, now: datetime, tokens: int) -> None:
        """Count a call of a model."""
        with self._lock:
            self._turn_over(now)
            self._spent = Spent(calls=self._spent.calls + 1, tokens=self._spent.tokens + tokens)

    def spent(self, now: datetime) -> Spent:
        """Return what models cost today."""
        with self._lock:
            self._turn_over(now)
            return self._spent

    def _turn_over(self, now: datetime) -> None:
        """Begin a new day."""
        day = now.astimezone(UTC).date().isoformat()
        if day > self._day:
            self._day, self._spent = day, Spent()
            self._kept.clear()


def by_certainty(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Return candidates in the order in which the budget serves them: asked for, then the most certain."""
    return sorted(candidates, key=lambda each: (not each.explicit, -each.confidence))
