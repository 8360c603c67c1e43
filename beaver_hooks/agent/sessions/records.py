"""The results of a session store."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import attrs
from attrs import field

from beaver_hostspecs import Message, Role, Trust


@attrs.frozen(kw_only=True)
class SessionInfo:
    """One session, without its messages.

    Attributes:
        id: the id, as it was given.
        user: the user of the session, as its first caller named them.
        title: its given title, else the first words of its first prompt.
        messages: the number of its visible messages.
        events: the number of its hidden events.
    """

    id: str
    user: str | None = None
    title: str = field(default="", repr=False)
    created: datetime
    updated: datetime
    messages: int = 0
    events: int = 0


@attrs.frozen(kw_only=True)
class HiddenEvent:
    """An event of a session that is not part of the conversation (`context_visible=false`)."""

    name: str
    at: datetime
    payload: Mapping[str, Any] = field(default=MappingProxyType({}), repr=False)


@attrs.frozen(kw_only=True)
class Resumed:
    """A session for its next turn.

    Attributes:
        id: the given or new id.
        history: its newest visible messages, in order.
    """

    id: str
    history: tuple[Message, ...] = field(default=(), repr=False)


@attrs.frozen(kw_only=True)
class Session:
    """One whole session: visible messages in order, and its hidden events if requested."""

    info: SessionInfo
    messages: tuple[Message, ...] = field(default=(), repr=False)
    events: tuple[HiddenEvent, ...] = field(default=(), repr=False)


@attrs.frozen(kw_only=True)
class SearchHit:
    """One message that a search found.

    Attributes:
        session: the id of its session.
        user: the user of the session.
        trust: the trust in the caller who began the session.
        snippet: some of its text around the first term found, on one line.
        score: higher is better; comparable within one search only.
    """

    session: str
    user: str | None = None
    trust: Trust = Trust.FULL
    role: Role
    when: datetime
    snippet: str = field(repr=False)
    score: float


@attrs.frozen(kw_only=True)
class ForgetReport:
    """The turns that were erased because they hold given words.

    Attributes:
        messages: messages that were erased.
        sessions: sessions that they belonged to.
        emptied: how many of these sessions had no other message, and were deleted.
    """

    messages: int = 0
    sessions: int = 0
    emptied: int = 0


@attrs.frozen(kw_only=True)
class ImportReport:
    """The result of an import, in sessions and in messages.

    Attributes:
        added: sessions that are new.
        skipped: sessions that exist and were left unchanged.
        replaced: sessions that existed and were replaced on request.
        messages: visible messages stored.
    """

    added: int = 0
    skipped: int = 0
    replaced: int = 0
    messages: int = 0
