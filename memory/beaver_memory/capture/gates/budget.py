"""The budget gate: how much is captured in a turn and in a day, and how much a model may be asked."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Protocol

import attrs
from attrs import field
from attrs.validators import ge

from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import Candidate
from beaver_memory.records import CaptureSpend, Owner

Ask = Callable[[str], object]
"""Sends a text to a model and returns its answer; it keeps to its own deadline and raises if it fails."""

CHARACTERS_PER_TOKEN = 4
NO_LIMIT = CaptureSpend(memories=2**62, calls=2**62, tokens=2**62)


class Ledger(Protocol):
    """Keeps what capture takes in a day, for all processes; a store of memories is one."""

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`."""


class BudgetSpentError(Exception):
    """The calls or the tokens of the day are spent, so the model was not asked."""


@attrs.frozen(kw_only=True)
class Budget:
    """The limits of capture.

    Attributes:
        per_turn: the most memories of a turn.
        per_day: the most memories of an owner in a day.
        model_calls_per_day: the most calls of a model for an owner in a day.
        model_tokens_per_day: the most tokens that those calls read and write.
    """

    per_turn: int = field(default=3, validator=ge(0))
    per_day: int = field(default=200, validator=ge(0))
    model_calls_per_day: int = field(default=200, validator=ge(0))
    model_tokens_per_day: int = field(default=200_000, validator=ge(0))

    @property
    def of_day(self) -> CaptureSpend:
        """The limits of a day."""
        return CaptureSpend(memories=self.per_day, calls=self.model_calls_per_day, tokens=self.model_tokens_per_day)


class BudgetGate:
    """Counts captured memories and the cost of models, by owner and day (UTC).

    Args:
        budget: the limits.
        ledger: keeps the counts.
    """

    def __init__(self, budget: Budget, ledger: Ledger) -> None:
        self.budget, self._ledger = budget, ledger

    def verdict(self, occasion: Occasion, in_turn: int) -> Verdict | None:
        """Return the objection to one more memory, or `None`.

        Args:
            occasion: the turn.
            in_turn: how many memories of the turn are admitted already.
        """
        if in_turn >= self.budget.per_turn:
            return Verdict(gate="budget", reason="turn_full")
        full = self.spent(occasion.owner, occasion.when).memories + in_turn >= self.budget.per_day
        return DAY_FULL if full else None

    def take(self, occasion: Occasion) -> bool:
        """Count one memory of an owner, unless other processes have filled the day meanwhile."""
        return self._spend(occasion.owner, occasion.when, CaptureSpend(memories=1))

    def counted(self, ask: Ask, owner: Owner, now: datetime) -> Ask:
        """Return a function that asks a model and counts the call.

        Raises of the function:
            BudgetSpentError: the day's calls or tokens are spent.
        """

        def asked(prompt: str) -> object:
            if not self._spend(owner, now, CaptureSpend(calls=1, tokens=len(prompt) // CHARACTERS_PER_TOKEN)):
                raise BudgetSpentError
            answer = ask(prompt)
            tokens = CaptureSpend(tokens=len(str(answer)) // CHARACTERS_PER_TOKEN)
            self._ledger.spend(owner, _day(now), tokens, NO_LIMIT)
            return answer

        return asked

    def spent(self, owner: Owner, now: datetime) -> CaptureSpend:
        """Return what capture has taken of an owner's day."""
        return self._ledger.spent(owner, _day(now))

    def _spend(self, owner: Owner, now: datetime, amount: CaptureSpend) -> bool:
        return self._ledger.spend(owner, _day(now), amount, self.budget.of_day)


DAY_FULL = Verdict(gate="budget", reason="day_full")


def _day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def by_certainty(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Return candidates in the order in which the budget serves them: asked for, then the most certain."""
    return sorted(candidates, key=lambda each: (not each.explicit, -each.confidence))
