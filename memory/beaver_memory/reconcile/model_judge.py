"""A judge that asks a language model."""

from collections.abc import Callable, Sequence

from beaver_memory.reconcile.contract import decision_of, question
from beaver_memory.reconcile.decision import Decision
from beaver_memory.records import Memory, NewMemory

Ask = Callable[[str], object]
"""Sends a text to a model and returns its answer; it keeps to its own deadline and raises if it fails."""

Trace = Callable[..., None]


class ModelJudge:
    """Decides by a model's answer. Whatever fails, the decision is `ADD` with the reason.

    Args:
        ask: asks the model.
        trace: receives each failure, without content: `trace(event, **facts)`.
    """

    def __init__(self, ask: Ask, *, trace: Trace | None = None) -> None:
        self._ask = ask
        self._trace = trace

    def decide(self, new: NewMemory, candidates: Sequence[Memory]) -> Decision:
        """Return the model's decision."""
        if not candidates:
            return Decision(reason="no_candidate")
        try:
            answer = self._ask(question(new, candidates))
        except Exception as error:  # noqa: BLE001 - a model fails in every way, and the memory is stored nevertheless
            self._report("reconcile_model_failed", error=type(error).__name__)
            return Decision(reason="model_failed")
        found = decision_of(answer, len(candidates))
        if found.reason != "model":
            self._report("reconcile_answer_refused", reason=found.reason)
        return found

    def _report(self, event: str, **facts: object) -> None:
        if self._trace is not None:
            self._trace(event, **facts)
