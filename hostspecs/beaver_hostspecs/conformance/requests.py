"""A request of the suite to a host: one prompt, and the steps of the scripted model."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs
from attrs import field

from beaver_hostspecs.freezing import freeze

ECHO = "echo"
"""A tool that each harness brings: it returns its argument `text` as it is."""

BROKEN = "broken"
"""A tool that each harness brings: it takes nothing and raises."""


@attrs.frozen(kw_only=True)
class Say:
    """The model answers, in several pieces where it is streamed."""

    text: str


@attrs.frozen(kw_only=True)
class CallTool:
    """The model asks for one call of a tool."""

    tool: str
    arguments: Mapping[str, Any] = field(factory=dict, converter=freeze)
    id: str = "call-1"


@attrs.frozen(kw_only=True)
class Fail:
    """The model's endpoint fails: raise an error from where the framework would meet it, one it does not retry."""


@attrs.frozen(kw_only=True)
class Hang:
    """The model never answers: await until the call is cancelled."""


Step = Say | CallTool | Fail | Hang
Way = Literal["whole", "stream", "break_off", "sync"]


def _steps(values: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class Ask:
    """One prompt to the agent.

    Attributes:
        prompt: the user's text.
        steps: the model's replies, one for each call of the model.
        session: the session to go on with; the framework keeps its history from one prompt to the next.
        user: the id of the user.
        way: `whole`, an awaited answer; `stream`, streamed and consumed to its end; `break_off`, streamed, and the
            consumer stops after the first piece, as an application would (`break`, then closing the stream);
            `sync`, by the framework's entry point for callers without an event loop.
        blocked: an output guardrail of the framework refuses the answer.
    """

    prompt: str
    steps: tuple[Step, ...] = field(converter=_steps)
    session: str = "session-1"
    user: str | None = "user-1"
    way: Way = "whole"
    blocked: bool = False
