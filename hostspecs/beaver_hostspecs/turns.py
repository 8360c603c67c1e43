"""The records of a turn that a host gives to every plugin, all of them frozen."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType, UnionType
from typing import Any, Literal, NoReturn, get_args

import attrs
from attrs import field

from beaver_hostspecs.freezing import freeze, members, texts

Role = Literal["user", "assistant", "system", "tool"]


class _Named(StrEnum):
    """An enum whose error lists the known values and does not show the given one."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:  # noqa: ARG003 - it must not be shown
        known = ", ".join(f"`{each}`" for each in cls)
        raise ValueError(f"not a valid {cls.__name__}; it is one of {known}")


class Trust(_Named):
    """How far the user of a turn is trusted with the content of memory."""

    FULL = "full"
    """The owner, for example at the local terminal."""
    INNER = "inner"
    FAMILIAR = "familiar"
    PUBLIC = "public"
    """Any other user; the value of a host that does not know the user."""

    def reaches(self, needed: "Trust") -> bool:
        """Whether this is at least the needed trust."""
        order = list(Trust)
        return order.index(self) <= order.index(needed)


class DropReason(_Named):
    """Why a turn ended without an answer."""

    FAILED = "failed"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """A guardrail blocked the answer."""
    ABANDONED = "abandoned"
    """The agent did not close the turn: it idled out, was superseded, or its host closed."""


class CompactionReason(_Named):
    """Why a host shortens the context of a session."""

    AUTOMATIC = "automatic"
    """The context is nearly full, or the host does so at intervals."""
    REQUESTED = "requested"
    """The user asked for it."""


# The validators name the accepted values and never the given one, which could be the words of a user.
Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _a(kind: type | UnionType, what: str) -> Validator:
    """Return a validator for values of `kind`, called `what` in the sentence."""

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if not isinstance(value, kind):
            raise TypeError(f"{attribute.name} must be {what}")

    return check


def _one_of(*names: str) -> Validator:
    what = " or ".join(f"`{name}`" for name in names)

    def check(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
        if value not in names:
            raise ValueError(f"{attribute.name} must be {what}")

    return check


def _aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


def _named(_: object, attribute: "attrs.Attribute[str]", value: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{attribute.name} must be a non-empty str")


def _tokens(_: object, attribute: "attrs.Attribute[int | None]", value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or value < 0):
        raise ValueError(f"{attribute.name} must be a number of tokens, 0 or more, or None")


def named_or_none(_: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    """Refuse a blank id: it would count as `None`, which stands for every user."""
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise ValueError(f"{attribute.name} must be a str that is not blank, or None")


_text = _a(str, "a str")
_text_or_none = _a(str | None, "a str or None")
_flag = _a(bool, "True or False")


def _never(_: str) -> bool:
    return False


@attrs.frozen(kw_only=True)
class Message:
    """One message of a conversation, as the user and the model saw it."""

    role: Role = field(validator=_one_of(*get_args(Role)))
    text: str = field(validator=_text)
    id: str | None = field(default=None, validator=_text_or_none)
    when: datetime | None = field(default=None, validator=attrs.validators.optional(_aware))
    speaker: str | None = field(default=None, validator=_text_or_none)


@attrs.frozen(kw_only=True)
class Scope:
    """The scope of a turn. Plugins keep their stored data inside it.

    A blank name is refused: it would count as `None`, which stands for every tenant or project.
    """

    tenant: str | None = field(default=None, validator=named_or_none)
    project: str | None = field(default=None, validator=named_or_none)
    agent: str | None = field(default=None, validator=named_or_none)
    channel: str | None = field(default=None, validator=named_or_none)


@attrs.frozen(kw_only=True)
class Actors:
    """The participants: not every turn is the user's own words to one agent."""

    speaker: str | None = field(default=None, validator=_text_or_none)
    speaker_kind: str | None = field(default=None, validator=_text_or_none)
    subject: str | None = field(default=None, validator=_text_or_none)
    agent: str | None = field(default=None, validator=_text_or_none)
    trigger: str | None = field(default=None, validator=_text_or_none)


@attrs.frozen(kw_only=True)
class HostRef:
    """An opaque object of the host (a task, a ticket, a document): memory carries it and never interprets it.

    Attributes:
        views: the names of the views that may show it.
    """

    kind: str = field(validator=_named)
    id: str = field(validator=_named)
    label: str | None = field(default=None, validator=_text_or_none)
    relation: str | None = field(default=None, validator=_text_or_none)
    views: tuple[str, ...] = field(default=(), converter=texts)


@attrs.frozen(kw_only=True)
class RegisteredTool:
    """One of the host's own tools, without its schema."""

    id: str = field(validator=_named)
    fingerprint: str = field(validator=_text)
    tags: tuple[str, ...] = field(default=(), converter=texts)
    enabled: bool = field(default=True, validator=_flag)


# One function per type: mypy cannot infer what a generic converter takes.
def _tools(values: Iterable[RegisteredTool]) -> tuple[RegisteredTool, ...]:
    return members(values, RegisteredTool)


def _messages(values: Iterable[Message]) -> tuple[Message, ...]:
    return members(values, Message)


def _refs(values: Iterable[HostRef]) -> tuple[HostRef, ...]:
    return members(values, HostRef)


@attrs.frozen(kw_only=True)
class ToolRegistry:
    """A compact snapshot of the tools that the host offers, to which experience with a tool can be bound."""

    id: str = field(validator=_named)
    fingerprint: str = field(validator=_text)
    tools: tuple[RegisteredTool, ...] = field(default=(), converter=_tools)


@attrs.frozen(kw_only=True)
class Turn:
    """One user prompt on its way to one final answer.

    A simple host fills the first four fields.

    Attributes:
        session: the host's id of the running session.
        id: the id of this turn, unique within the process.
        prompt: the user's text, unchanged.
        when: the time of the prompt, with a time zone.
        conversation: a stable id where the host has one that outlives the session; else the session.
        user: the host's id of the user, or `None` where it has none; a blank id is refused.
        history: the visible messages before this prompt, oldest first.
        refs: opaque objects of the host that this turn is about.
        registry: the host's own tools.
        budget: how many tokens of the context memory may spend, or `None`.
        trust: how far the user is trusted; `public` where the host does not know.
    """

    session: str = field(validator=_named)
    id: str = field(validator=_named)
    prompt: str = field(validator=_text)
    when: datetime = field(validator=_aware)
    conversation: str = field(default=attrs.Factory(lambda turn: turn.session, takes_self=True), validator=_named)
    user: str | None = field(default=None, validator=named_or_none)
    history: tuple[Message, ...] = field(default=(), converter=_messages, repr=False)
    scope: Scope = field(default=Scope(), validator=_a(Scope, "a Scope"))
    actors: Actors = field(default=Actors(), validator=_a(Actors, "an Actors"))
    refs: tuple[HostRef, ...] = field(default=(), converter=_refs)
    registry: ToolRegistry | None = field(default=None, validator=_a(ToolRegistry | None, "a ToolRegistry or None"))
    budget: int | None = field(default=None, validator=_tokens)
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)
    _was_injected: Callable[[str], bool] = field(default=_never, repr=False, eq=False)

    def was_injected(self, text: str) -> bool:
        """Whether `text` consists, in good part, of text that the host injected in the last turns of this session.

        Reflowed and quoted text is caught; paraphrase may not be. Call it before learning from a text: a memory
        that learns its own recall repeats itself for ever.
        """
        return self._was_injected(text)


@attrs.frozen(kw_only=True)
class Answer:
    """The final answer of a turn, as the user got it.

    Attributes:
        text: the final text.
        when: when the turn was committed (not when its background hooks ran).
        messages: every message of the turn, the prompt and the answer among them, without recalled references.
        stored: whether the host has stored them, or `None` where it does not say.
    """

    text: str = field(validator=_text)
    when: datetime = field(validator=_aware)
    messages: tuple[Message, ...] = field(default=(), converter=_messages, repr=False)
    stored: bool | None = field(default=None, validator=_a(bool | None, "True, False or None"))


@attrs.frozen(kw_only=True)
class ToolResult:
    """The result of one tool call.

    Attributes:
        call_id: the id of the call, as the model gave it.
        tool: the tool's name.
        registry: the id of the `ToolRegistry` that the tool is in, or `None`.
        arguments: its arguments: read-only, nested mappings and lists too (`thaw` gives plain ones).
        outcome: whether it succeeded.
        output: its output, or `None`.
        error: its error, or `None`.
        summary: the host's own one-line summary.
        external: the output comes from outside (a web page, a mail), so neither the user nor the host wrote it.
        private: the output must not be stored or sent anywhere.
    """

    call_id: str = field(validator=_named)
    tool: str = field(validator=_named)
    outcome: Literal["success", "error"] = field(default="success", validator=_one_of("success", "error"))
    arguments: Mapping[str, object] = field(
        default=MappingProxyType({}), converter=freeze, validator=_a(MappingProxyType, "a mapping"), repr=False
    )
    output: object = field(default=None, converter=freeze, repr=False)
    error: str | None = field(default=None, validator=_text_or_none, repr=False)
    registry: str | None = field(default=None, validator=_text_or_none)
    duration: timedelta | None = field(default=None, validator=_a(timedelta | None, "a timedelta or None"))
    summary: str | None = field(default=None, validator=_text_or_none, repr=False)
    external: bool = field(default=False, validator=_flag)
    private: bool = field(default=False, validator=_flag)


@attrs.frozen(kw_only=True)
class Compaction:
    """A context that a host is about to shorten.

    Attributes:
        session: the host's id of the running session, as in its turns.
        when: the time of the announcement, with a time zone.
        conversation: a stable id where the host has one that outlives the session; else the session.
        user: the host's id of the user, or `None` where it has none; a blank id is refused.
        scope: the scope of the session.
        trust: how far the user is trusted; `public` where the host does not know.
        why: the reason.
    """

    session: str = field(validator=_named)
    when: datetime = field(validator=_aware)
    conversation: str = field(default=attrs.Factory(lambda made: made.session, takes_self=True), validator=_named)
    user: str | None = field(default=None, validator=named_or_none)
    scope: Scope = field(default=Scope(), validator=_a(Scope, "a Scope"))
    trust: Trust = field(default=Trust.PUBLIC, converter=Trust)
    why: CompactionReason = field(default=CompactionReason.AUTOMATIC, converter=CompactionReason)
