"""What a host tells every plugin about a turn: the same frozen records for all of them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_hostspecs.freezing import freeze, members, texts

Role = Literal["user", "assistant", "system", "tool"]


class Trust(StrEnum):
    """How far the turn's speaker is trusted with what memory holds."""

    FULL = "full"
    """The owner, for example at the local terminal."""
    INNER = "inner"
    FAMILIAR = "familiar"
    PUBLIC = "public"
    """Anybody; what a host says when it does not know."""


class DropReason(StrEnum):
    """Why a turn ended without an answer."""

    FAILED = "failed"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """A guardrail kept the answer from the user."""
    ABANDONED = "abandoned"
    """Nobody closed it: it idled out, was superseded, or its host closed."""


def _aware(_: object, attribute: "attrs.Attribute[datetime]", value: datetime) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


def _named(_: object, attribute: "attrs.Attribute[str]", value: str) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{attribute.name} must be a non-empty str")


def _tokens(_: object, attribute: "attrs.Attribute[int | None]", value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or value < 0):
        raise ValueError(f"{attribute.name} must be a number of tokens, 0 or more, or None")


def _never(_: str) -> bool:
    return False


@attrs.frozen(kw_only=True)
class Message:
    """One message of a conversation, as the user and the model saw it."""

    role: Role
    text: str = field(validator=instance_of(str))
    id: str | None = None
    when: datetime | None = None
    speaker: str | None = None


@attrs.frozen(kw_only=True)
class Scope:
    """What the turn belongs to. Plugins keep what they store inside it."""

    tenant: str | None = None
    project: str | None = None
    agent: str | None = None
    channel: str | None = None


@attrs.frozen(kw_only=True)
class Actors:
    """Who takes part: not every turn is the user's own words to one agent."""

    speaker: str | None = None
    speaker_kind: str | None = None
    subject: str | None = None
    agent: str | None = None
    trigger: str | None = None


@attrs.frozen(kw_only=True)
class HostRef:
    """An opaque object of the host (a task, a ticket, a document): memory carries it and never interprets it.

    Attributes:
        views: the names of the views that may show it.
    """

    kind: str
    id: str
    label: str | None = None
    relation: str | None = None
    views: tuple[str, ...] = field(default=(), converter=texts)


@attrs.frozen(kw_only=True)
class RegisteredTool:
    """One of the host's own tools, without its schema."""

    id: str
    fingerprint: str
    tags: tuple[str, ...] = field(default=(), converter=texts)
    enabled: bool = True


# One function per type: mypy cannot infer what a generic converter takes.
def _tools(values: Iterable[RegisteredTool]) -> tuple[RegisteredTool, ...]:
    return members(values, RegisteredTool)


def _messages(values: Iterable[Message]) -> tuple[Message, ...]:
    return members(values, Message)


def _refs(values: Iterable[HostRef]) -> tuple[HostRef, ...]:
    return members(values, HostRef)


@attrs.frozen(kw_only=True)
class ToolRegistry:
    """A compact snapshot of the tools that the host offers: what experience with a tool can be bound to."""

    id: str
    fingerprint: str
    tools: tuple[RegisteredTool, ...] = field(default=(), converter=_tools)


@attrs.frozen(kw_only=True)
class Turn:
    """One user prompt on its way to one final answer.

    A simple host fills the first four fields.

    Attributes:
        session: the host's id of the running session.
        id: the id of this turn, unique within the process.
        prompt: what the user said, as it was said.
        when: when the user said it, with a time zone.
        conversation: a stable id where the host has one that outlives the session; else the session.
        user: the host's id of the user, or `None` where it has none.
        history: the visible messages before this prompt, oldest first.
        refs: opaque objects of the host that this turn is about.
        registry: the host's own tools.
        budget: how many tokens of the context memory may spend, or `None`.
        trust: how far the speaker is trusted; `public` where the host does not know.
    """

    session: str = field(validator=_named)
    id: str = field(validator=_named)
    prompt: str = field(validator=instance_of(str))
    when: datetime = field(validator=_aware)
    conversation: str = field(default=attrs.Factory(lambda turn: turn.session, takes_self=True), validator=_named)
    user: str | None = None
    history: tuple[Message, ...] = field(default=(), converter=_messages, repr=False)
    scope: Scope = field(default=Scope(), validator=instance_of(Scope))
    actors: Actors = field(default=Actors(), validator=instance_of(Actors))
    refs: tuple[HostRef, ...] = field(default=(), converter=_refs)
    registry: ToolRegistry | None = None
    budget: int | None = field(default=None, validator=_tokens)
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)
    _was_injected: Callable[[str], bool] = field(default=_never, repr=False, eq=False)

    def was_injected(self, text: str) -> bool:
        """Whether `text` is, in good part, what the host injected in the last turns of this session.

        Reflowed and quoted text is caught; nothing is promised about paraphrase. Ask it before learning from what
        was said: a memory that learns its own recall repeats itself for ever.
        """
        return self._was_injected(text)


@attrs.frozen(kw_only=True)
class Answer:
    """The final answer of a turn, as the user got it.

    Attributes:
        text: the final text.
        when: when the turn was committed (not when the background got round to it).
        messages: every message of the turn, the prompt and the answer among them, without recalled references.
        stored: whether the host has stored them, or `None` where it does not say.
    """

    text: str = field(validator=instance_of(str))
    when: datetime = field(validator=_aware)
    messages: tuple[Message, ...] = field(default=(), converter=_messages, repr=False)
    stored: bool | None = None


@attrs.frozen(kw_only=True)
class ToolResult:
    """What one tool call came to.

    Attributes:
        call_id: the id of the call, as the model gave it.
        tool: the tool's name.
        registry: the id of the `ToolRegistry` that the tool is in, or `None`.
        arguments: what it was called with: read-only, nested mappings and lists too (`thaw` gives plain ones).
        outcome: whether it succeeded.
        output: what it returned, or `None`.
        error: what went wrong, or `None`.
        summary: the host's own one-line account of it.
        external: the output comes from outside (a web page, a mail): data that somebody else wrote.
        private: the output must not be stored or sent anywhere.
    """

    call_id: str = field(validator=_named)
    tool: str = field(validator=_named)
    outcome: Literal["success", "error"] = field(
        default="success", validator=attrs.validators.in_(("success", "error"))
    )
    arguments: Mapping[str, object] = field(
        default=MappingProxyType({}), converter=freeze, validator=instance_of(MappingProxyType), repr=False
    )
    output: object = field(default=None, converter=freeze, repr=False)
    error: str | None = field(default=None, repr=False)
    registry: str | None = None
    duration: timedelta | None = None
    summary: str | None = field(default=None, repr=False)
    external: bool = False
    private: bool = False
