"""The harness of a host: a real agent whose model is scripted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs
from attrs import field

from beaver_hostspecs.conformance.cards import Card
from beaver_hostspecs.freezing import freeze
from beaver_hostspecs.turns import Message

ECHO = "echo"
"""A tool that each harness brings: it returns its argument `text` as it is."""

BROKEN = "broken"
"""A tool that each harness brings: it takes nothing and raises."""


@attrs.frozen(kw_only=True)
class ModelCall:
    """A request to the model, as near to the wire as the framework shows it.

    Attributes:
        system: the system prompt.
        messages: the texts of all other messages in order, with their roles; one message may be given as several, one
            for each of its texts. Tool calls and their results are left out.
        tools: the names of the tools that were offered.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = field(default=(), converter=tuple)


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


class HostHarness(Protocol):
    """An agent of one framework with a scripted model. The suite makes a fresh one for each case.

    The agent has the base system prompt `beaver_hostspecs.conformance.BASE`, keeps the history of its sessions in
    memory, and offers the tools `echo` and `broken`.

    Attributes:
        card: the abilities that the host declares.
        calls: the requests to the model so far, oldest first.
    """

    card: Card
    calls: Sequence[ModelCall]

    async def open(self, plugins: Mapping[str, object], fail_closed: Collection[str] = ()) -> None:
        """Open a host with these plugins, and make the agent that uses it."""

    async def open_plain(self) -> None:
        """Make the agent without any memory."""

    async def run(self, ask: Ask) -> str:
        """Run one prompt; return the answer as far as the user saw it. Errors of the framework come out unchanged.

        It is called from within an event loop; for `sync` it brings the framework's entry point to a thread.
        """

    async def stored(self, session: str) -> Sequence[Message]:
        """Return the stored messages of a session, as the framework would load them for the next prompt."""

    async def compact(self, session: str, user: str | None) -> None:
        """Let the framework shorten the context of a session that has had a turn, in the way that it announces.

        Called only where the card says that compactions are announced.
        """

    async def settle(self) -> None:
        """Wait until the background work of the host is done, at most a few seconds."""

    async def unregister(self, plugin: str) -> None:
        """Unregister a plugin from the open host."""

    async def unwell(self) -> Collection[str]:
        """Return the names of the plugins whose health is not `ok`; an empty collection where the host keeps none."""

    async def close(self) -> None:
        """Close the host and the agent, so that `open` can be called again.

        Called between two openings and at the end, also after a failure and without an open host.
        """
