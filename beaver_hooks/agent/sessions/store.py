"""The store of sessions: one SQLite file in the state folder, used by one thread per store."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions.database import SessionDatabase, storage_error
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
from beaver_hooks.agent.sessions.texts import checked_id, new_session_id
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.agent.sessions.transfer import read_lines, session_lines
from beaver_hooks.audit.events import AuditEvent, Facts
from beaver_hooks.audit.trail import Trail
from beaver_hooks.state_folder import make_state_folder
from beaver_hostspecs import AuditUnavailable, Clock, Message, SystemClock, Trust
from beaver_toolkit.sqlite.errors import DatabaseError, translated

Answer = TypeVar("Answer")
MOST_ROWS = 2**31


class SessionStore:
    """Keeps sessions. Several processes may have a store open in the same folder.

    Every method runs its work in the store's one thread, in the order of the calls. Data is durable when a writing
    method returns. If its caller is cancelled meanwhile, the work is done or not begun, never half done; shield the
    call to know which.

    Every method raises `StorageError` with a remedy if the database cannot be used; the next call tries again. Those
    that take a session raise `UnknownSession` for an id that is not stored.
    """

    def __init__(self, folder: Path, *, clock: Clock | None = None, store_secrets: bool = False) -> None:
        self._folder, self._store_secrets = folder, store_secrets
        self._clock = clock or SystemClock()
        self._database, self._damaged = SessionDatabase(folder), DamagedMessages()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="beaver-sessions")
        self._pid = os.getpid()

    @classmethod
    def open(cls, folder: Path, *, clock: Clock | None = None, store_secrets: bool = False) -> "SessionStore":
        """Open the store in a state folder, and make missing files there.

        Args:
            folder: the state folder.
            clock: the time of messages without one.
            store_secrets: whether messages keep the secrets that rules recognise; else each is masked.

        Raises:
            StorageError: it cannot be used; gives the reason and a remedy. No existing file is replaced.
        """
        try:
            store = cls(make_state_folder(folder), clock=clock, store_secrets=store_secrets)
        except AuditUnavailable as error:
            raise StorageError(str(error)) from error
        try:
            store.submit(lambda _: None).result()  # opens the database
        except BaseException:
            store._executor.shutdown()
            raise
        return store

    def audit_damage(self, trail: Trail) -> None:
        """Record each damaged message that is found from now on in an audit trail."""

        def told(name: str, facts: Facts) -> None:
            trail.append(AuditEvent(name=name, at=self._clock.now(), facts=facts))

        self._damaged.told = told

    async def close(self) -> None:
        """Finish the pending work and close the database; closing again does nothing."""
        if os.getpid() == self._pid:
            await asyncio.to_thread(self._shut)

    # --- One session --------------------------------------------------------------------------------------------

    async def ensure(self, session_id: str | None = None, user_id: str | None = None) -> str:
        """Make a session unless it exists; return its id: the given one, else a new one.

        Args:
            session_id: any text of 1 to 512 characters without control characters; used unchanged.
            user_id: the user of a new session. The user of an existing session never changes.

        Raises:
            SessionError: an id is invalid.
        """
        session = new_session_id() if session_id is None else checked_id(session_id)
        user = None if user_id is None else checked_id(user_id, "user")
        await self._run(lambda work: work.ensure(session, user, self._clock.now()))
        return session

    async def begin(
        self,
        session_id: str | None = None,
        user_id: str | None = None,
        *,
        limit: int = 50,
        trust: Trust = Trust.PUBLIC,
    ) -> Resumed:
        """Return a session for its next turn: an existing one, or a new one as `ensure` makes it.

        Args:
            session_id: the session; a new one if `None`.
            user_id: the user, who must be the one that began the session.
            limit: the most messages to return, the newest ones.
            trust: the trust in the caller. A caller of full trust without a user may continue every session; one of
                less trust without a user, those that were begun with no more trust.

        Raises:
            SessionError: an id is invalid, or the session is not this user's.
        """
        session = new_session_id() if session_id is None else checked_id(session_id)
        user = None if user_id is None else checked_id(user_id, "user")
        begin = partial(Work.begin, session=session, user=user, limit=_within(limit), trust=trust)
        return await self._run(lambda work: begin(work, now=self._clock.now()))

    async def resume(self, session_id: str, *, limit: int = 50) -> Resumed:
        """Return a session for its next turn, even one that is not stored, without storing it."""
        session = checked_id(session_id)
        return await self._run(lambda work: work.resume(session, _within(limit)))

    async def check(self, session_id: str, user_id: str | None, trust: Trust) -> None:
        """Raise unless a caller may continue a session; one that is not stored is free.

        Raises:
            SessionError: the session is not this caller's.
        """
        session = checked_id(session_id)
        await self._run(lambda work: work.check(session, user_id, trust))

    async def owner(self, session_id: str) -> str | None:
        """Return the user of a session; `None` if it was begun without a user, or is not stored."""
        session = checked_id(session_id)
        return await self._run(lambda work: work.owner(session))

    async def trust(self, session_id: str) -> Trust:
        """Return the trust in the caller who began a session."""
        return await self._run(lambda work: work.trust(session_id))

    async def append_exchange(self, session_id: str, messages: Sequence[Message]) -> None:
        """Store the visible messages of a turn, in one transaction: the user's, and the last answer."""
        given = tuple(messages)
        await self._run(lambda work: work.append(session_id, given, self._clock.now()))

    async def history(self, session_id: str, limit: int = 50) -> tuple[Message, ...]:
        """Return the newest `limit` visible messages, in order; the cost does not depend on their total number."""
        return await self._run(lambda work: work.history(session_id, _within(limit)))

    async def add_event(self, session_id: str, name: str, payload: Mapping[str, Any]) -> None:
        """Store a hidden event. The payload is scrubbed, and long texts in it are cut."""
        await self._run(lambda work: work.add_event(session_id, name, payload, self._clock.now()))

    async def events(self, session_id: str, limit: int = 100) -> tuple[HiddenEvent, ...]:
        """Return the newest `limit` hidden events, in order."""
        return await self._run(lambda work: work.events(session_id, _within(limit)))

    async def show(self, session_id: str, *, hidden: bool = False) -> Session:
        """Return a consistent copy of a whole session, with its hidden events if `hidden`."""
        return await self._run(lambda work: work.show(session_id, hidden=hidden))

    async def rename(self, session_id: str, title: str | None) -> None:
        """Give a session a title; `None` restores the first words."""
        await self._run(lambda work: work.rename(session_id, title))

    async def delete(self, session_id: str) -> None:
        """Delete a session so that none of its content is left in the database's files.

        While another process reads, the write-ahead log may keep content until that process is done and another
        session is deleted, or the last process closes the database.
        """
        await self._run(lambda work: work.delete(session_id))

    async def forget(self, words: str, *, user_id: str | None = None) -> ForgetReport:
        """Erase the turns that hold all of some words in one message, like `delete`; so are sessions without a rest."""
        return await self._run(lambda work: work.forget(words=words, user=user_id))

    # --- All sessions -------------------------------------------------------------------------------------------

    async def list(self, limit: int = 50, user_id: str | None = None) -> tuple[SessionInfo, ...]:
        """Return the sessions with messages, of one user or of all, the one used last first."""
        user = None if user_id is None else checked_id(user_id, "user")
        return await self._run(lambda work: work.list(_within(limit), user))

    async def search(
        self,
        query: str,
        limit: int = 10,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        exclude_session: str | None = None,
    ) -> tuple[SearchHit, ...]:
        """Return the visible messages that fit a query best, best first. The query is words, never a syntax.

        Args:
            query: the words to search for.
            limit: the most hits.
            session_id: search only this session.
            user_id: search only this user's sessions.
            exclude_session: do not search this session.
        """
        find = partial(Work.search, query=query, limit=_within(limit), within=session_id, without=exclude_session)
        return await self._run(lambda work: find(work, user=user_id))

    async def holding(self, words: str, *, user_id: str | None = None) -> tuple[SearchHit, ...]:
        """Return the messages that hold all of some words, which `forget` would erase with their turns."""
        return await self._run(lambda work: work.holding(words=words, user=user_id))

    async def quoting(self, texts: Sequence[str], *, user_id: str | None = None) -> int:
        """Return how many sessions, of one user or of all, have a message that holds all words of one of the texts."""
        given = tuple(texts)
        return await self._run(lambda work: work.quoting(given, user=user_id))

    async def export(self, session_id: str | None = None) -> AsyncIterator[str]:
        """Yield one session, or all of them, as JSON lines without line ends; each session is consistent."""
        chosen = (session_id,) if session_id is not None else await self._run(lambda work: work.session_ids())
        for each in chosen:
            session = await self._run(partial(Work.show_if_any, session=each, needed=session_id is not None))
            for line in session_lines(session) if session else ():
                yield line

    async def import_(self, lines: Iterable[str], *, replace: bool = False) -> ImportReport:
        """Store exported sessions, each in one transaction; skip existing ones unless `replace`.

        Raises:
            SessionError: a line is wrong; names its number, and no session was imported.
        """
        incoming = await asyncio.to_thread(read_lines, lines)
        total = ImportReport()
        for each in incoming:
            total = await self._run(partial(Work.take_in, incoming=each, replace=replace, total=total))
        return total

    async def integrity(self) -> tuple[str, ...]:
        """Return the faults that SQLite finds in the database; none if it is sound."""
        return await self._run(lambda work: work.integrity())

    # --- The thread ---------------------------------------------------------------------------------------------

    def submit(self, job: Callable[[Work], Answer]) -> "Future[Answer]":
        """Run a job in the store's thread, from any thread.

        Raises:
            StorageError: the store is closed, or belongs to another process.
        """
        if os.getpid() != self._pid:
            raise storage_error(self._folder, "forked")
        try:
            return self._executor.submit(self._guarded, job)
        except RuntimeError as error:
            raise storage_error(self._folder, "closed") from error

    async def _run(self, job: Callable[[Work], Answer]) -> Answer:
        return await asyncio.wrap_future(self.submit(job))

    def _shut(self) -> None:
        self._executor.shutdown()
        self._database.close()

    def _guarded(self, job: Callable[[Work], Answer]) -> Answer:
        try:
            with translated():
                return job(Work(self._database, self._damaged, store_secrets=self._store_secrets))
        except DatabaseError as error:
            self._database.close()
            raise storage_error(self._folder, error.category) from error


def _within(limit: int) -> int:
    return min(max(0, limit), MOST_ROWS)
