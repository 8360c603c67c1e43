"""Finds the messages that hold all words of a text, and erases their turns."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from beaver_hooks.agent.sessions import reads, writes
from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.agent.sessions.query import MOST_TERMS, SearchScope, all_of, one, query_terms, terms
from beaver_hooks.agent.sessions.records import ForgetReport
from beaver_hooks.agent.sessions.sums import DamagedMessages
from beaver_hooks.agent.sessions.texts import decode, opening, optional_encode

if TYPE_CHECKING:
    import apsw

MASKED = "redacted"
"""The term of every mask, by which the index finds messages with secrets."""


def matching(connection: "apsw.Connection", words: str, scope: SearchScope) -> list[int]:
    """Return the numbers of the messages that hold all words of a text; none for a text without words."""
    wanted = query_terms(words, MOST_TERMS)
    if not wanted:
        return []
    found = {int(number) for (number,) in connection.execute(SQL["matching_messages"], (scope.limit(all_of(wanted)),))}
    return sorted(found | _with_secrets(connection, {*wanted}, scope))


def _with_secrets(connection: "apsw.Connection", wanted: set[str], scope: SearchScope) -> set[int]:
    """Return the messages that hold all terms, some of them in a secret, which the index does not know."""
    masked = [int(number) for (number,) in connection.execute(SQL["matching_messages"], (scope.limit(one(MASKED)),))]
    return {number for number in masked if wanted <= {*terms(_text(connection, number))}}


def _text(connection: "apsw.Connection", number: int) -> str:
    return decode(connection.execute(SQL["text_of_message"], (number,)).get or b"")


def quoting(connection: "apsw.Connection", texts: Iterable[str], scope: SearchScope) -> int:
    """Return how many sessions of a scope have a message that holds all words of one of the texts."""
    found = set[int]()
    for text in texts:
        wanted = query_terms(text, MOST_TERMS)
        if wanted:
            rows = connection.execute(SQL["quoting_sessions"], (scope.limit(all_of(wanted)),))
            found.update(session for (session,) in rows)
    return len(found)


def forget(connection: "apsw.Connection", words: str, scope: SearchScope, damaged: DamagedMessages) -> ForgetReport:
    """Erase the turns of the matching messages, and the sessions that have no message left."""
    turns = {turn for number in matching(connection, words, scope) for turn in _turn(connection, number)}
    sessions = {session for session, _ in turns}
    for _, number in turns:
        for statement in ("delete_words_of_message", "delete_message"):
            connection.execute(SQL[statement], (number,))
    emptied = sum(_settle(connection, session, words, damaged) for session in sessions)
    return ForgetReport(messages=len(turns), sessions=len(sessions), emptied=emptied)


def _turn(connection: "apsw.Connection", number: int) -> list[tuple[int, int]]:
    """Return session and number of the messages of a turn: one without the other would make no sense to a model."""
    return [(session, each) for session, each in connection.execute(SQL["messages_of_turn"], {"number": number})]


def _settle(connection: "apsw.Connection", session: int, words: str, damaged: DamagedMessages) -> bool:
    """Correct the counts and titles of a session that lost messages; return whether it is deleted, being empty."""
    connection.execute(SQL["recount_messages"], {"session": session})
    count, title = connection.execute(SQL["rest_of_session"], (session,)).get
    if not count:
        writes.delete(connection, session)
        return True
    if title is not None and {*query_terms(words, MOST_TERMS)} <= {*query_terms(decode(title), MOST_TERMS)}:
        writes.name(connection, session, None)
    first_words = opening(reads.messages(connection, session, reads.EVERYTHING, damaged))
    connection.execute(SQL["count_messages"], (0, optional_encode(first_words), session))
    return False
