"""The approval gate: what a person must accept before it is remembered. Pure.

What proposes is never what approves: neither the agent nor a model can accept what this gate queues.
"""

import attrs

from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import BINDING, Candidate


@attrs.frozen(kw_only=True)
class ApprovalGate:
    """Queues text of external origin that would steer the agent, instructions to the agent, and uncertain statements.

    Attributes:
        least_confidence: below it a candidate waits for approval.
    """

    least_confidence: float = 0.4

    def __call__(self, candidate: Candidate, occasion: Occasion) -> Verdict | None:  # noqa: ARG002 - the shape of a gate
        """Return the objection to a candidate, or `None`."""
        if candidate.external and (candidate.kind in BINDING or candidate.steers_agent):
            return Verdict(gate="approval", action="queue", reason="external_origin")
        if candidate.explicit:
            return None
        if candidate.steers_agent:
            return Verdict(gate="approval", action="queue", reason="rule_about_the_agent")
        if candidate.confidence < self.least_confidence:
            return Verdict(gate="approval", action="queue", reason="low_confidence")
        return None
