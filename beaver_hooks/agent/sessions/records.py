"""What a session store answers."""

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
        user: whose session it is, as its first caller said.
        title: what it was named, else the first words of its first prompt.
        messages: how many visible messages it has.
        events: how many hidden events it has.
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
    """Something that happened in a session and is part of no conversation (`context_visible=false`)."""

    name: str
    at: datetime
    payload: Mapping[str, Any] = field(default=MappingProxyType({}), repr=False)


@attrs.frozen(kw_only=True)
class Resumed:
    """A session as its next turn finds it.

    Attributes:
        id: the id, given or newly made.
        history: its newest visible messages, in order.
    """

    id: str
    history: tuple[Message, ...] = field(default=(), repr=False)


@attrs.frozen(kw_only=True)
class Session:
    """One whole session: visible messages in order, and its hidden events where they were asked for."""

    info: SessionInfo
    messages: tuple[Message, ...] = field(default=(), repr=False)
    events: tuple[HiddenEvent, ...] = field(default=(), repr=False)


@attrs.frozen(kw_only=True)
class SearchHit:
    """One message that a search found.

    Attributes:
        session: the id of its session.
        user: whose session it is.
        trust: how far the caller who began the session was trusted.
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
class ImportReport:
    """What an import did, in sessions and in messages.

    Attributes:
        added: sessions that are new.
        skipped: sessions that exist and were left as they are.
        replaced: sessions that existed and were replaced, because that was asked for.
        messages: visible messages stored.
    """

    added: int = 0
    skipped: int = 0
    replaced: int = 0
    messages: int = 0
