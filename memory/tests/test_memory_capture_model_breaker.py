"""A small model that fails is left alone for a while: no capture waits for it, and no call of the day is spent."""

import pytest

from beaver_hostspecs.testing import FrozenClock
from beaver_memory.capture.gates.budget import BudgetSpentError
from beaver_memory.capture.model_breaker import POLICY, ModelBreaker, ModelPausedError, category_of


class Coded(Exception):
    """An error with a category."""

    def __init__(self, category):
        self.category = category


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (Coded("rate_limited"), "rate_limited"),
        (Coded("The key sk-1 is wrong"), "error"),
        (Coded(None), "error"),
        (TimeoutError(), "timeout"),
        (ValueError("text"), "error"),
    ],
)
def test_categories(error, category):
    """The category of a failure is one word, never a text of the error or the name of its class."""
    assert category_of(error) == category


def outcomes(breaker, answers, asked):
    """Ask once for each answer that may be needed; return the answers, or the categories of the failures."""

    def ask(prompt):
        asked.append(prompt)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = []
    for number in range(len(answers)):
        try:
            found.append(breaker.guarded(ask)(str(number)))
        except (Coded, ModelPausedError) as error:
            found.append((type(error), error.category))
    return found


def test_a_failure_pauses_the_model():
    """After a failure it is not asked until the pause is over; then one answer ends it, and one failure extends it."""
    clock, asked = FrozenClock(), []
    breaker = ModelBreaker(clock)
    assert outcomes(breaker, ["a", Coded("timeout"), "c"], asked) == [
        "a", (Coded, "timeout"), (ModelPausedError, "timeout"),
    ]  # fmt: skip
    clock.advance(POLICY.seconds + 1)
    assert outcomes(breaker, [Coded("connection"), "b"], asked) == [
        (Coded, "connection"), (ModelPausedError, "connection"),
    ]  # fmt: skip
    clock.advance(POLICY.seconds + 1)
    assert outcomes(breaker, ["a"], asked) == [(ModelPausedError, "connection")]
    clock.advance(POLICY.seconds)
    assert outcomes(breaker, ["a", "b"], asked) == ["a", "b"]
    assert asked == ["0", "1", "0", "0", "1"]


def test_a_spent_budget_is_no_failure():
    """A call that the budget refuses says nothing about the model."""
    breaker, asked = ModelBreaker(FrozenClock()), []

    def spent(_):
        raise BudgetSpentError

    with pytest.raises(BudgetSpentError):
        breaker.guarded(spent)("a")
    assert outcomes(breaker, ["b"], asked) == ["b"]
