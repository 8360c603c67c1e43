"""What a run of the agent comes to."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal

import attrs
from attrs import field

from beaver_hooks.agent.messages import Usage
from beaver_hooks.tools.outcomes import ToolOutcome

Status = Literal["completed", "truncated", "tool_limit"]


@attrs.frozen(kw_only=True)
class ToolCallSummary:
    """One tool call of a run, without what it was about."""

    id: str
    name: str
    outcome: Literal["success", "error"]
    duration: timedelta = timedelta()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        milliseconds = round(self.duration.total_seconds() * 1000, 3)
        return {"id": self.id, "name": self.name, "outcome": self.outcome, "milliseconds": milliseconds}


def summarise_calls(outcomes: Iterable[ToolOutcome]) -> tuple[ToolCallSummary, ...]:
    """Return the summaries of tool calls, in order."""
    return tuple(
        ToolCallSummary(
            id=each.call.id,
            name=each.call.name,
            outcome="success" if each.error is None else "error",
            duration=each.duration,
        )
        for each in outcomes
    )


@attrs.frozen(kw_only=True)
class AgentRunResult:
    """What one prompt came to.

    Attributes:
        text: the answer, as the user gets it.
        status: `completed`; `truncated` where the provider cut the answer; or `tool_limit` where the model asked for
            tools more often than it may. All three are normal ends.
        session_id: the session, as it was given or newly made.
        turn_id: the turn.
        tool_calls: the tool calls of the run, in order.
        usage: the tokens of all rounds as the provider counts them, or `None` where it does not say.
        receipt_id: under which id the turn's receipt is found, or `None` where none is kept.
    """

    text: str = field(repr=False)
    status: Status = "completed"
    session_id: str
    turn_id: str
    tool_calls: tuple[ToolCallSummary, ...] = ()
    usage: Usage | None = None
    receipt_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with the keys that `beaver run --json` documents."""
        usage = self.usage
        return {
            "text": self.text,
            "status": self.status,
            "sessionId": self.session_id,
            "turnId": self.turn_id,
            "toolCalls": [each.to_json() for each in self.tool_calls],
            "usage": usage and {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
            "receiptId": self.receipt_id,
        }
