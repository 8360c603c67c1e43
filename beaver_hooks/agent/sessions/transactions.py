"""The work of the store's thread: one method per operation, each writing one in one transaction."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import attrs

from beaver_hooks.agent.errors import SessionError, UnknownSession
from beaver_hooks.agent.sessions import erasure, reads, writes
from beaver_hooks.agent.sessions.database import SQL, SessionDatabase
from beaver_hooks.agent.sessions.query import SearchScope, hits, search, session_term, user_term
from beaver_hooks.agent.sessions.records import (
    ForgetReport,
    HiddenEvent,
    ImportReport,
    Resumed,
    SearchHit,
    Session,
    SessionInfo,
)
from beaver_hooks.agent.sessions.sums import DamagedMessages
from beaver_hooks.agent.sessions.texts import checked_id, given_title, kept, stored_text
from beaver_hooks.agent.sessions.transfer import Incoming
from beaver_hostspecs import Message, Trust, scrub
from beaver_toolkit.sqlite.connections import integrity_problems


class Work:
    """The store's operations, run in its thread. Errors of SQLite pass through.

    Messages are stored without the secrets that rules recognise, unless `store_secrets`.
    """

    def __init__(
        self, database: SessionDatabase, damaged: DamagedMessages | None = None, *, store_secrets: bool = False
    ) -> None:
        self._database, self._damaged = database, damaged or DamagedMessages()
        self._prepared = scrub if store_secrets else stored_text
        self._connection = database.connection()

    def ensure(self, session: str, user: str | None, now: datetime, trust: Trust | None = None) -> None:
        """Add a session unless it exists."""
        if writes.find(self._connection, session) is None:
            with self._database.writing() as connection:
                writes.add_session(connection, session, user, now, now, trust=trust)

    def append(self, session: str, messages: Sequence[Message], now: datetime) -> None:
        """Add the visible messages of a turn."""
        stored = self._as_stored(kept(messages))
        with self._database.writing() as connection:
            number, user = self._find(session)
            writes.add_messages(connection, number, user, stored, now)
            writes.touch(connection, number, now)

    def history(self, session: str, limit: int) -> tuple[Message, ...]:
        """Return the newest visible messages."""
        return reads.messages(self._connection, self._find(session)[0], limit, self._damaged)

    def begin(self, session: str, user: str | None, limit: int, now: datetime, *, trust: Trust) -> Resumed:
        """Return a session for its next turn; add it unless it exists."""
        if not self._database.unwritable:
            self.ensure(session, user, now, trust)
        self.check(session, user, trust)
        return self.resume(session, limit)

    def check(self, session: str, user: str | None, trust: Trust) -> None:
        """Raise unless a caller may continue a session; one that is not stored is free."""
        if why := self._why_not(session, user, trust):
            raise SessionError(f"The session {why}; leave the id out to start a new session.")

    def _why_not(self, session: str, user: str | None, trust: Trust) -> str | None:
        """Return why a caller may not continue a session, or `None`."""
        found = writes.find(self._connection, session)
        if found is None or (user is None and trust is Trust.FULL):
            return None
        number, owner = found
        if user != owner:
            return "was started without a user" if owner is None else "belongs to another user"
        return None if trust.reaches(reads.begun_with(self._connection, number)) else "was started with more trust"

    def resume(self, session: str, limit: int) -> Resumed:
        """Return a session for its next turn without adding it."""
        found = writes.find(self._connection, session)
        if found is None:
            return Resumed(id=session)
        messages = reads.messages(self._connection, found[0], limit, self._damaged)
        return Resumed(id=session, history=messages)

    def owner(self, session: str) -> str | None:
        """Return the user of a session."""
        found = writes.find(self._connection, session)
        return None if found is None else found[1]

    def trust(self, session: str) -> Trust:
        """Return the trust in the caller who began a session."""
        return reads.begun_with(self._connection, self._find(session)[0])

    def add_event(self, session: str, name: str, payload: Mapping[str, object], now: datetime) -> None:
        """Add a hidden event."""
        with self._database.writing() as connection:
            writes.add_events(connection, self._find(session)[0], [HiddenEvent(name=name, at=now, payload=payload)])

    def add_events(self, events: Mapping[str, Sequence[HiddenEvent]]) -> int:
        """Add hidden events to several sessions; return the number of events whose session is gone."""
        lost = 0
        with self._database.writing() as connection:
            for session, each in events.items():
                found = writes.find(connection, session)
                if found is None:
                    lost += len(each)
                else:
                    writes.add_events(connection, found[0], each)
        return lost

    def events(self, session: str, limit: int) -> tuple[HiddenEvent, ...]:
        """Return the newest hidden events."""
        return reads.events(self._connection, self._find(session)[0], limit)

    def show(self, session: str, *, hidden: bool) -> Session:
        """Return a whole session."""
        with self._moment():
            number = self._find(session)[0]
            info = reads.info(self._connection, number)
            if reads.count(self._connection, number) != info.messages:
                self._damaged.note("session", number)
            return Session(
                info=info,
                messages=reads.messages(self._connection, number, reads.EVERYTHING, self._damaged),
                events=reads.events(self._connection, number, reads.EVERYTHING) if hidden else (),
            )

    def show_if_any(self, *, session: str, needed: bool) -> Session | None:
        """Return a whole session; `None` if it is missing and not `needed`."""
        if not needed and writes.find(self._connection, session) is None:
            return None
        return self.show(session, hidden=True)

    def rename(self, session: str, title: str | None) -> None:
        """Give a session a title."""
        with self._database.writing() as connection:
            writes.name(connection, self._find(session)[0], given_title(title))

    def delete(self, session: str) -> None:
        """Delete a session, without traces in the files."""
        with self._database.writing() as connection:
            writes.delete(connection, self._find(session)[0])
            # Interior pages of the index may still name a term.
            connection.execute(SQL["optimise_words"])
        self._empty_log()

    def quoting(self, texts: Sequence[str], *, user: str | None) -> int:
        """Return how many sessions hold all words of one of the texts in a message."""
        with self._moment():
            return erasure.quoting(self._connection, texts, _of_user(user))

    def holding(self, *, words: str, user: str | None) -> tuple[SearchHit, ...]:
        """Return the messages that hold all words, the oldest first."""
        with self._moment():
            found = erasure.matching(self._connection, words, _of_user(user))
            return tuple(hits(self._connection, found, words, self._damaged))

    def forget(self, *, words: str, user: str | None) -> ForgetReport:
        """Erase the turns that hold all words, without traces in the files."""
        with self._database.writing() as connection:
            report = erasure.forget(connection, words, _of_user(user), self._damaged)
            connection.execute(SQL["optimise_words"])
        self._empty_log()
        return report

    def _empty_log(self) -> None:
        self._database.empty_log()

    def list(self, limit: int, user: str | None) -> tuple[SessionInfo, ...]:
        """Return the sessions used last."""
        return tuple(reads.infos(self._connection, limit, user))

    def search(
        self, *, query: str, limit: int, within: str | None, without: str | None, user: str | None
    ) -> tuple[SearchHit, ...]:
        """Return the messages that fit a query."""
        chosen = [session_term(self._find(within)[0])] if within is not None else []
        if user is not None:
            chosen.append(user_term(checked_id(user, "user")))
        left_out = writes.find(self._connection, checked_id(without)) if without is not None else None
        scope = SearchScope(within=tuple(chosen), without=(session_term(left_out[0]),) if left_out else ())
        with self._moment():
            return tuple(search(self._connection, query, limit, scope, self._damaged))

    def session_ids(self, user: str | None = None) -> tuple[str, ...]:
        """Return all ids, or those of a user."""
        return tuple(reads.session_ids(self._connection, user))

    def holdings(self, user: str) -> dict[str, int]:
        """Return how many sessions, messages and events a user has."""
        with self._moment():
            return reads.holdings(self._connection, user)

    def delete_those_of(self, user: str) -> None:
        """Delete the sessions of a user, without traces in the files."""
        with self._database.writing() as connection:
            for session in reads.session_ids(connection, user):
                writes.delete(connection, self._find(session)[0])
            connection.execute(SQL["optimise_words"])
        self._empty_log()

    def take_in(self, *, incoming: Incoming, replace: bool, total: ImportReport) -> ImportReport:
        """Store one imported session; return the total with it."""
        with self._database.writing() as connection:
            found = writes.find(connection, incoming.id)
            if found and not replace:
                return attrs.evolve(total, skipped=total.skipped + 1)
            if found:
                writes.delete(connection, found[0])
            self._add(incoming)
        return attrs.evolve(
            total,
            added=total.added + (found is None),
            replaced=total.replaced + (found is not None),
            messages=total.messages + len(incoming.messages),
        )

    def integrity(self) -> tuple[str, ...]:
        """Return the faults of the file."""
        return tuple(integrity_problems(self._connection))

    def _add(self, incoming: Incoming) -> None:
        connection = self._connection
        number = writes.add_session(connection, incoming.id, incoming.user, incoming.created, incoming.updated)
        writes.name(connection, number, given_title(incoming.title))
        writes.add_messages(connection, number, incoming.user, self._as_stored(incoming.messages), incoming.created)
        writes.add_events(connection, number, incoming.events)

    def _as_stored(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages with the texts that are stored of them."""
        return tuple(attrs.evolve(each, text=self._prepared(each.text)) for each in messages)

    def _find(self, session: str) -> tuple[int, str | None]:
        found = writes.find(self._connection, checked_id(session))
        if found is None:
            raise UnknownSession("There is no such session; `beaver sessions list` lists the stored ones.")
        return found

    @contextlib.contextmanager
    def _moment(self) -> Iterator[None]:
        # Other processes may write between two statements.
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")


def _of_user(user: str | None) -> SearchScope:
    return SearchScope() if user is None else SearchScope(within=(user_term(checked_id(user, "user")),))
