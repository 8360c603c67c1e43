"""What the agent and a provider say to each other: plain records, no wire format."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
from attrs import field

from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import Role

OnDelta = Callable[[str], None]
"""Called with each piece of the answer's text as it arrives."""


@attrs.frozen(kw_only=True)
class ChatMessage:
    """One message on its way to the provider.

    Attributes:
        tool_calls: what an `assistant` message asks for.
        tool_call_id: which call a `tool` message answers.
    """

    role: Role
    text: str = field(default="", repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@attrs.frozen(kw_only=True)
class Completion:
    """One answer of the model: text, or calls it asks for, or both."""

    text: str = field(default="", repr=False)
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None


class Provider(Protocol):
    """A language model. Adding one is one file in `providers/` and one row in its table."""

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        on_delta: OnDelta | None = None,
    ) -> Completion:
        """Return the model's answer to `messages`.

        Args:
            messages: the conversation, the system prompt first.
            tools: name, description and parameters (JSON Schema) of each tool on offer.
            on_delta: given the text piece by piece while it arrives; streaming is asked for only then.

        Raises:
            ProviderError: it did not answer; nothing of the answer is to be used.
        """

    async def close(self) -> None:
        """Close connections."""
