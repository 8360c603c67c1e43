"""Writes memories of an owner: reconciled, within the budget of models, and read back. Blocking.

`WriteGate` refuses secrets and threats.
"""

from collections.abc import Iterable, Iterator

import attrs

from beaver_hostspecs import holds_secret
from beaver_memory.capture.gates.budget import Ask, BudgetGate
from beaver_memory.capture.model_breaker import ModelBreaker
from beaver_memory.engine import MemoryEngine
from beaver_memory.filters import Filters
from beaver_memory.reconcile.model_judge import ModelJudge
from beaver_memory.reconcile.reconciler import Reconciler
from beaver_memory.records import NewMemory, Owner
from beaver_memory.runtime.profile import CaptureProfile, RuntimeServices
from beaver_memory.runtime.reports import Refusal
from beaver_toolkit.redaction.redactor import HELD, Redactor

TEXTS = (
    "title", "narrative", "summary", "evidence", "facts", "type", "keywords", "tags", "related_files", "related_people",
)  # fmt: skip
"""The fields in which rules look for secrets. The others are names and ids, which may look random."""

NAMES = ("project", "agent", "speaker")
"""Names in which rules look for secrets, but not for those of `_NUMBERS`, which a name may be."""

_NUMBERS = frozenset({"card number", "account number", "e-mail address", "phone number"})

_APART = "\n" * 8


class WriteGate:
    """Refuses memories with a credential, or with other texts that the policy calls secret. Thread-safe.

    Args:
        redactor: finds secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def refusal(self, memory: NewMemory) -> Refusal | None:
        """Return why a memory must not be stored, or `None`."""
        kinds = self._kinds(memory, TEXTS) or [each for each in self._kinds(memory, NAMES) if each not in _NUMBERS]
        if not kinds and any(map(holds_secret, _texts(memory, attrs.fields_dict(NewMemory)))):
            kinds = [HELD]
        return _refusal(kinds) if kinds else None

    def _kinds(self, memory: NewMemory, names: Iterable[str]) -> list[str]:
        return [each.kind for each in self._redactor.find(_APART.join(_texts(memory, names)))]

    def first_refusal(self, memories: Iterable[NewMemory]) -> Refusal | None:
        """Return why a write of several memories is refused, or `None`."""
        return next((refusal for memory in memories if (refusal := self.refusal(memory)) is not None), None)


def _refusal(kinds: list[str]) -> Refusal:
    """Return a sentence with the kinds of the secrets, and never with their texts."""
    return Refusal(
        code="secret",
        sentence=f"The text holds a secret ({', '.join(kinds)}); leave it out, or name the place where it is kept. "
        "Secrets are never remembered.",
    )


def _texts(memory: NewMemory, names: Iterable[str]) -> Iterator[str]:
    for value in (getattr(memory, name) for name in names):
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from value


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
