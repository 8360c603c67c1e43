"""All gates one after the other: each candidate ends admitted, queued or refused."""

from collections.abc import Iterable, Sequence

import attrs

from beaver_memory.capture.gates.approval import ApprovalGate
from beaver_memory.capture.gates.budget import BudgetGate, by_certainty
from beaver_memory.capture.gates.privacy import PrivacyGate
from beaver_memory.capture.gates.verdict import Gate, Occasion, Verdict
from beaver_memory.capture.gates.write import WriteGate
from beaver_memory.capture.records import Candidate

OFF = Verdict(gate="switch", reason="off")


@attrs.frozen(kw_only=True)
class Judged:
    """A candidate and the objection to it; without one it is admitted."""

    candidate: Candidate
    verdict: Verdict | None = None

    @property
    def admitted(self) -> bool:
        """Whether it may be stored now."""
        return self.verdict is None

    @property
    def queued(self) -> bool:
        """Whether a person decides about it."""
        return self.verdict is not None and self.verdict.action == "queue"


class Gates:
    """The gates of capture.

    Args:
        budget: the budget gate.
        write: the write gate.
        privacy: the privacy gate.
        approval: the approval gate.
        enabled: the switch.
    """

    def __init__(
        self,
        budget: BudgetGate,
        *,
        write: WriteGate | None = None,
        privacy: PrivacyGate | None = None,
        approval: ApprovalGate | None = None,
        enabled: bool = True,
    ) -> None:
        self.budget, self.enabled = budget, enabled
        self._policies: Sequence[Gate] = (privacy or PrivacyGate(), write or WriteGate(), approval or ApprovalGate())

    def judged(self, candidates: Iterable[Candidate], occasion: Occasion) -> list[Judged]:
        """Return the fate of each candidate; the budget serves the most certain ones first."""
        found, kept = list[Judged](), 0
        for candidate in by_certainty(tuple(candidates)):
            verdict = self._objection(candidate, occasion, kept)
            found.append(Judged(candidate=candidate, verdict=verdict))
            kept += verdict is None or verdict.action == "queue"
        return found

    def _objection(self, candidate: Candidate, occasion: Occasion, kept: int) -> Verdict | None:
        if not self.enabled:
            return OFF
        objections = [each for policy in self._policies if (each := policy(candidate, occasion)) is not None]
        refusal = next((each for each in objections if each.action == "refuse"), None)
        return refusal or self.budget.verdict(occasion, kept) or next(iter(objections), None)
