"""Reads sessions, their messages and events."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.agent.sessions.records import HiddenEvent, SessionInfo
from beaver_hooks.agent.sessions.sums import DamagedMessages, is_whole
from beaver_hooks.agent.sessions.texts import decode, optional_decode
from beaver_hostspecs import Message, Trust

if TYPE_CHECKING:
    import apsw

EVERYTHING = -1
"""The limit that means all rows."""


def info(connection: "apsw.Connection", number: int) -> SessionInfo:
    """Return one session."""
    return _info(connection.execute(SQL["session_info"], (number,)).fetchall()[0])


def infos(connection: "apsw.Connection", limit: int, user: str | None) -> list[SessionInfo]:
    """Return the sessions with messages, of one user or of all, the one used last first."""
    if user is None:
        rows = connection.execute(SQL["session_infos"], (limit,)).fetchall()
    else:
        rows = connection.execute(SQL["session_infos_of_user"], (user, limit)).fetchall()
    return [_info(row) for row in rows]


def session_ids(connection: "apsw.Connection", user: str | None = None) -> list[str]:
    """Return the ids of all sessions, or of all of a user, the oldest first."""
    if user is None:
        rows = connection.execute(SQL["session_ids"]).fetchall()
    else:
        rows = connection.execute(SQL["session_ids_of_user"], (user,)).fetchall()
    return [str(row[0]) for row in rows]


def holdings(connection: "apsw.Connection", user: str) -> dict[str, int]:
    """Return how many sessions, messages and events a user has."""
    return {noun: int(count) for noun, count in connection.execute(SQL["holdings"], {"user": user})}


def messages(connection: "apsw.Connection", number: int, limit: int, damaged: DamagedMessages) -> tuple[Message, ...]:
    """Return the newest visible messages of a session, in order, without damaged ones; note these."""
    found: list[Message] = []
    for place, checksum, *row in reversed(connection.execute(SQL["messages"], (number, limit)).fetchall()):
        if is_whole(row, checksum):
            found.append(_message(*row[1:]))
        else:
            damaged.note("message", place)
    return tuple(found)


def count(connection: "apsw.Connection", number: int) -> int:
    """Return the number of stored messages of a session."""
    return int(connection.execute(SQL["count_rows"], (number,)).get)


def events(connection: "apsw.Connection", number: int, limit: int) -> tuple[HiddenEvent, ...]:
    """Return the newest hidden events of a session, in order."""
    rows = connection.execute(SQL["events"], (number, limit)).fetchall()
    return tuple(
        HiddenEvent(name=name, at=datetime.fromisoformat(at), payload=json.loads(payload))
        for name, at, payload in reversed(rows)
    )


def begun_with(connection: "apsw.Connection", number: int) -> Trust:
    """Return the trust in the caller who began a session.

    An imported session has none. Without a user it was the owner's at the terminal; with one it may be a stranger's.
    """
    trust, user = connection.execute(SQL["begun_with"], (number,)).get
    return Trust(trust) if trust else Trust.FULL if user is None else Trust.PUBLIC


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


def _message(role: bytes, text: bytes, at: bytes, name: bytes | None, speaker: bytes | None) -> Message:
    return Message(
        role="user" if role == b"user" else "assistant",
        text=decode(text),
        id=optional_decode(name),
        when=datetime.fromisoformat(at.decode()),
        speaker=optional_decode(speaker),
    )


def totals(connection: "apsw.Connection") -> dict[str, int]:
    """Return how many sessions and messages there are."""
    return {noun: int(count) for noun, count in connection.execute(SQL["count_everything"])}
