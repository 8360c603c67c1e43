"""The messages between the agent and a provider: plain records, no wire format."""

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
        tool_calls: the calls that an `assistant` message asks for.
        tool_call_id: the call that a `tool` message answers.
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
    """A language model.

    A new one is a module in `providers/`, a row in `PROVIDERS` there, and a kind in `beaver_hooks/config/provider.py`.
    """

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
            on_delta: called with the text piece by piece while it arrives; without it the answer is not streamed.

        Raises:
            ProviderError: the model did not answer; a partial answer must not be used.
        """

    async def close(self) -> None:
        """Close connections."""
