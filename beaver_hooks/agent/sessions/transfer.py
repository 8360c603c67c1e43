"""Sessions as JSON lines, for export and import. Pure.

A line with `"type": "session"` begins a session; the lines after it, of type `message` and `event`, belong to it.
The lines are ASCII: every character of a text survives every tool that copies them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs
from attrs import field

from beaver_hooks.agent.errors import SessionError
from beaver_hooks.agent.sessions.records import HiddenEvent, Session, SessionInfo
from beaver_hooks.agent.sessions.texts import checked_id
from beaver_hostspecs import Message
from beaver_toolkit.strict_json import loads


@attrs.define(kw_only=True)
class Incoming:
    """A session in the course of an import, as far as it was read."""

    id: str
    user: str | None
    title: str | None = field(repr=False)
    created: datetime
    updated: datetime
    messages: list[Message] = field(factory=list, repr=False)
    events: list[HiddenEvent] = field(factory=list, repr=False)


def session_lines(session: Session) -> Iterator[str]:
    """Yield the lines of one session, without line ends."""
    yield _session_line(session.info)
    for message in session.messages:
        yield _line(
            "message", role=message.role, text=message.text, when=message.when, id=message.id, speaker=message.speaker
        )
    for event in session.events:
        yield _line("event", name=event.name, when=event.at, payload=event.payload)


def read_lines(lines: Iterable[str]) -> list[Incoming]:
    """Return the sessions in the lines; empty lines do not count.

    Raises:
        SessionError: a line has another form; names its number.
    """
    sessions: dict[str, Incoming] = {}
    current: Incoming | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            current = _read(line, current)
            _keep(current, sessions)
        # Too deep nesting raises RecursionError; a missing field or one of another type, the other errors.
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, SessionError) as error:
            raise SessionError(
                f"Line {number} is not a line of an exported session; nothing was imported. Correct or remove the line."
            ) from error
    return [*sessions.values()]


def _keep(session: Incoming, sessions: dict[str, Incoming]) -> None:
    if sessions.setdefault(session.id, session) is not session:
        raise ValueError("the session is there twice")


def _session_line(info: SessionInfo) -> str:
    return _line(
        "session",
        id=info.id,
        user=info.user,
        title=info.title,
        created=info.created,
        updated=info.updated,
    )


def _line(kind: str, **fields: object) -> str:
    known = {key: value for key, value in fields.items() if value is not None}
    return json.dumps({"type": kind, **known}, default=_plain)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else dict(value)  # type: ignore[call-overload]


def _read(line: str, current: Incoming | None) -> Incoming:
    data = loads(line)
    kind = data["type"]
    if kind == "session":
        return _session(data)
    if current and kind == "message":
        current.messages.append(_message(data))
    elif current and kind == "event":
        current.events.append(_event(data))
    else:
        raise ValueError("an unknown type, or no session has begun")
    return current


def _session(data: Mapping[str, Any]) -> Incoming:
    user = data.get("user")
    return Incoming(
        id=checked_id(data["id"]),
        user=None if user is None else checked_id(user, "user"),
        title=_optional_text(data.get("title")),
        created=_time(data["created"]),
        updated=_time(data["updated"]),
    )


def _message(data: Mapping[str, Any]) -> Message:
    role = data["role"]
    if role not in ("user", "assistant"):
        raise ValueError("a role that is never visible")
    return Message(
        role=role,
        text=data["text"],
        when=_time(data["when"]),
        id=_optional_text(data.get("id")),
        speaker=_optional_text(data.get("speaker")),
    )


def _event(data: Mapping[str, Any]) -> HiddenEvent:
    if not isinstance(data["payload"], dict):
        raise TypeError("a payload is an object")
    return HiddenEvent(name=str.__str__(data["name"]), at=_time(data["when"]), payload=data["payload"])


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time without a time zone")
    return time


def _optional_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError("no text")
