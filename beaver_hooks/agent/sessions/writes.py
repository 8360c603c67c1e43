"""Writes sessions: the row, the messages and their terms, the events."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.agent.sessions.query import session_term, terms, user_term
from beaver_hooks.agent.sessions.records import HiddenEvent
from beaver_hooks.agent.sessions.sums import message_checksum
from beaver_hooks.agent.sessions.texts import encode, opening, optional_encode, searchable
from beaver_hooks.audit.events import stamp
from beaver_hostspecs import Message, Trust, scrub, scrub_value
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    import apsw


def find(connection: "apsw.Connection", session: str) -> tuple[int, str | None] | None:
    """Return the number and the user of a session, or `None` if the id is not stored."""
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    return (row[0], row[1]) if row else None


def add_session(
    connection: "apsw.Connection",
    session: str,
    user: str | None,
    created: datetime,
    updated: datetime,
    *,
    trust: Trust | None = None,
) -> int:
    """Add a session unless the id exists; return its number."""
    connection.execute(SQL["add_session"], (session, user, stamp(created), stamp(updated), trust and trust.value))
    return int(connection.execute(SQL["session_number"], (session,)).get)


def add_messages(
    connection: "apsw.Connection", number: int, user: str | None, messages: Sequence[Message], now: datetime
) -> None:
    """Add visible messages to a session, whose texts may be stored, with the terms that find them."""
    scope = " ".join([session_term(number), *([user_term(user)] if user is not None else [])])
    for message in messages:
        # The index has no secrets, even if the messages keep them, so that no search shows them.
        text = message.text
        at, name, speaker = stamp(message.when or now), optional_encode(message.id), optional_encode(message.speaker)
        checksum = message_checksum((number, message.role.encode(), encode(text), at.encode(), name, speaker))
        row = (number, message.role, encode(text), at, name, speaker, checksum)
        connection.execute(SQL["add_message"], row)
        index = (connection.last_insert_rowid(), " ".join(terms(searchable(text))), scope)
        connection.execute(SQL["add_words"], index)
    connection.execute(
        SQL["count_messages"],
        (len(messages), optional_encode(opening(messages)), number),
    )


def add_events(connection: "apsw.Connection", number: int, events: Iterable[HiddenEvent]) -> None:
    """Add hidden events to a session, without secrets."""
    rows = [(number, stamp(each.at), _plain(each.name), _json(scrub_value(each.payload))) for each in events]
    connection.executemany(SQL["add_event"], rows)
    connection.execute(SQL["count_events"], (len(rows), number))


def touch(connection: "apsw.Connection", number: int, now: datetime) -> None:
    """Set the time of the last message of a session."""
    connection.execute(SQL["touch"], (stamp(now), number))


def name(connection: "apsw.Connection", number: int, title: str | None) -> None:
    """Give a session a title; `None` removes it."""
    connection.execute(SQL["set_title"], (optional_encode(title), number))


def delete(connection: "apsw.Connection", number: int) -> None:
    """Delete a session and all that belongs to it."""
    for statement in ("delete_words", "delete_messages", "delete_events", "delete_session"):
        connection.execute(SQL[statement], (number,))


def _plain(name: str) -> str:
    return scrub(name).encode("utf-8", "backslashreplace").decode("utf-8")


def _json(payload: object) -> str:
    return json.dumps(payload, default=type_name)
