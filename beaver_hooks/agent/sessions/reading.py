"""The SQL of reading sessions. No statement's cost depends on how long a session is beyond what it returns."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaver_hooks.agent.sessions.records import HiddenEvent, SessionInfo
from beaver_hooks.agent.sessions.texts import decode, optional_decode
from beaver_hostspecs import Message

if TYPE_CHECKING:
    import apsw

EVERYTHING = -1
"""As a limit: all there is."""

_INFO = "SELECT id, user, coalesce(title, opening, x''), created, updated, messages, events FROM sessions "
_MESSAGES = "SELECT role, text, id, at, speaker FROM messages WHERE session = ? ORDER BY number DESC LIMIT ?"
_EVENTS = "SELECT name, at, payload FROM events WHERE session = ? ORDER BY number DESC LIMIT ?"


def info(connection: "apsw.Connection", number: int) -> SessionInfo:
    """Return one session."""
    return _info(connection.execute(_INFO + "WHERE number = ?", (number,)).fetchall()[0])


def infos(connection: "apsw.Connection", limit: int, user: str | None) -> list[SessionInfo]:
    """Return the sessions in which something was said, of one user or of all, the one used last first."""
    chosen, bindings = ("", (limit,)) if user is None else ("AND user = ? ", (user, limit))
    said = f"WHERE messages > 0 {chosen}"
    rows = connection.execute(f"{_INFO}{said}ORDER BY updated DESC, number DESC LIMIT ?", bindings).fetchall()
    return [_info(row) for row in rows]


def session_ids(connection: "apsw.Connection") -> list[str]:
    """Return the ids of all sessions, the oldest first."""
    return [str(row[0]) for row in connection.execute("SELECT id FROM sessions ORDER BY number").fetchall()]


def messages(connection: "apsw.Connection", number: int, limit: int) -> tuple[Message, ...]:
    """Return the newest visible messages of a session, in order."""
    rows = connection.execute(_MESSAGES, (number, limit)).fetchall()
    return tuple(_message(*row) for row in reversed(rows))


def events(connection: "apsw.Connection", number: int, limit: int) -> tuple[HiddenEvent, ...]:
    """Return the newest hidden events of a session, in order."""
    rows = connection.execute(_EVENTS, (number, limit)).fetchall()
    return tuple(
        HiddenEvent(name=name, at=datetime.fromisoformat(at), payload=json.loads(payload))
        for name, at, payload in reversed(rows)
    )


def _info(row: Sequence[Any]) -> SessionInfo:
    session, user, title, created, updated, count, hidden = row
    return SessionInfo(
        id=session,
        user=user,
        title=decode(title),
        created=datetime.fromisoformat(created),
        updated=datetime.fromisoformat(updated),
        messages=count,
        events=hidden,
    )


def _message(role: str, text: bytes, name: bytes | None, at: str, speaker: bytes | None) -> Message:
    return Message(
        role="user" if role == "user" else "assistant",
        text=decode(text),
        id=optional_decode(name),
        when=datetime.fromisoformat(at),
        speaker=optional_decode(speaker),
    )
