"""Writes memories of an owner: reconciled, within the budget of models, and read back. Blocking."""

import attrs

from beaver_memory.capture.gates.budget import Ask, BudgetGate
from beaver_memory.capture.model_breaker import ModelBreaker
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.reconcile.model_judge import ModelJudge
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.gates import WriteGate
from beaver_memory.runtime.profile import CaptureProfile, RuntimeServices
from beaver_toolkit.redaction.redactor import Redactor


class MemoryWrites:
    """Writes of one engine. Thread-safe.

    Args:
        engine: the engine.
        profile: whether a model decides, and how often it may be asked.
        services: of the process; `ask_model` asks the small model.
        redactor: finds secrets, which no memory holds.
    """

    def __init__(
        self, engine: MemoryEngine, profile: CaptureProfile, services: RuntimeServices, redactor: Redactor
    ) -> None:
        self.redactor, self.gate = redactor, WriteGate(redactor)
        self.engine, self.clock, self.report = engine, services.clock, services.report
        self.budget = BudgetGate(profile.budget, engine.store)
        self._model = None if profile.extractor == "rules" else services.ask_model
        self._breaker = ModelBreaker(services.clock)
        self._trace = services.trace

    def ask(self, owner: Owner) -> Ask | None:
        """Return what asks the small model in the name of an owner; `None` where rules alone decide."""
        if self._model is None:
            return None
        return self._breaker.guarded(self.budget.counted(self._model, owner, self.clock.now()))

    def reconciler(self, owner: Owner) -> Reconciler:
        """Return what writes memories of an owner."""
        ask = self.ask(owner)
        judge = None if ask is None else ModelJudge(ask, trace=self._trace)
        return Reconciler(self.engine, judge=judge, clock=self.clock)

    def is_there(self, id_: int, new: NewMemory, own: Filters) -> bool:
        """Return whether a memory that was written is found by its id, with its text."""
        now = attrs.evolve(own.within(now=self.clock.now()), lapsed=True)
        return any(each.title == new.title for each in self.engine.get([id_], now))
