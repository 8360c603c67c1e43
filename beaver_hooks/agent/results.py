"""The result of a run of the agent."""

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
    """One tool call of a run, without its content."""

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
    """The result of one prompt.

    Attributes:
        text: the user's answer.
        status: `completed`; `truncated` if the provider cut the answer; or `tool_limit` if the model called tools
            more often than it may. All three are normal ends.
        session_id: the given or new session.
        turn_id: the turn.
        tool_calls: the tool calls of the run, in order.
        usage: the tokens of all rounds as the provider counts them, or `None` if it does not count.
        receipt_id: the id of the turn's receipt, or `None` if none is stored.
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
