"""Keeps for each session what the prompt index lists, put together once and used until a write. Blocking."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import attrs
from attrs import field

from beaver_hooks_local.embedding.protocol import Trace
from beaver_hooks_local.engine import MemoryEngine
from beaver_hooks_local.errors import LocalError
from beaver_hooks_local.gate.memory import Answers
from beaver_hooks_local.hosting.scoping import Sight
from beaver_hooks_local.injecting.prompt_index import MOST_SESSIONS, PromptIndex, Row, merged, rendered, session_line
from beaver_hooks_local.injecting.said import Conversation
from beaver_hooks_local.query import Hit
from beaver_hooks_local.records import Memory
from beaver_hooks_local.settings import PromptIndexSettings
from beaver_hostspecs import Clock, Reference, Report, Trust

SECONDS = 600.0
"""How long a list is used again, unless something was written."""


@attrs.frozen(kw_only=True)
class Listing:
    """What the prompt index of a session may list: memories, and lines that show sessions."""

    rows: tuple[Row, ...] = ()
    sessions: tuple[str, ...] = field(default=(), repr=False)


@attrs.frozen(kw_only=True)
class _Always:
    """What is listed whatever is asked.

    Attributes:
        recent: rows of the newest memories.
        differs: there are memories that hold in one session only, so that not every session sees the same.
    """

    recent: tuple[Row, ...] = ()
    differs: bool = False


class Listings:
    """Makes lists and keeps them. Thread-safe.

    Args:
        engine: where recent memories and sessions come from.
        settings: how much, and whether at all.
        clock: where time comes from.
        trace: is told of every step.
    """

    def __init__(self, engine: MemoryEngine, settings: PromptIndexSettings, *, clock: Clock, trace: Trace) -> None:
        self._engine, self._settings, self._clock, self._trace = engine, settings, clock, trace
        self._kept: Answers[Listing] = Answers(SECONDS)
        self._always: Answers[_Always] = Answers(SECONDS)

    def kept(self, sight: Sight, version: tuple[int, ...]) -> Listing | None:
        """Return the list of a session, if there is one that still holds."""
        if not self._settings.enabled:
            return Listing()
        return self._kept.get(sight, version=version, now=self._clock.monotonic())

    def lacking(self, sight: Sight, version: tuple[int, ...]) -> int:
        """Return for how many rows a list of a session has room besides what is recent."""
        try:
            always = self._whatever_is_asked(sight, version, self._clock.now(), self._clock.monotonic())
        except LocalError:
            # Who makes the list tells of it.
            return 0
        return max(0, self._settings.limit - len(always.recent))

    def make(
        self, sight: Sight, version: tuple[int, ...], hits: Sequence[Hit], report: Report, *, keep: bool
    ) -> Listing:
        """Return a list of what is recent and what was found; `keep` it for the session.

        Its failure is told, and is no failure of the turn.
        """
        moment, now = self._clock.now(), self._clock.monotonic()
        try:
            always = self._whatever_is_asked(sight, version, moment, now)
            last = self._engine.store.summaries(sight.owner, limit=MOST_SESSIONS) if sight.trust is Trust.FULL else ()
        except LocalError as error:
            self.tell("memory_prompt_index_failed", report, error=type(error).__name__)
            return Listing()
        rows = tuple(merged(always.recent, hits, limit=self._settings.limit))
        made = Listing(rows=rows, sessions=tuple(map(session_line, last)))
        if keep:
            ends = lasts((row.memory for row in made.rows), moment)
            self._kept.put(sight, made, version=version, now=now, lasts=ends)
        return made

    def references(
        self, listing: Listing, given: set[int], conversation: Conversation, room: int | None, report: Report
    ) -> tuple[Reference, ...]:
        """Return a list as references, without what a turn has already.

        Args:
            listing: what may be listed.
            given: the ids of the memories that the turn is given.
            conversation: what was said.
            room: the tokens that are left, or `None`.
            report: of the turn.
        """
        most = self._settings.max_tokens
        rows = [row for row in listing.rows if row.memory.id not in given and not conversation.shows(row)]
        index = rendered(rows, listing.sessions, max_tokens=most if room is None else min(most, room))
        if index.pages:
            self._tell_index(index, report)
        else:
            some = "budget" if rows or listing.sessions else "empty"
            self.skipped(some if self._settings.enabled else "off", report)
        return index.references

    def skipped(self, reason: str, report: Report) -> None:
        """Tell why a turn has no prompt index."""
        self._trace("memory_prompt_index_skipped", reason=reason)
        if reason not in {"gate", "off"}:
            report.event("memory_prompt_index_skipped", reason=reason)

    def tell(self, event: str, report: Report, **facts: str | int) -> None:
        """Tell both the trace and the report."""
        self._trace(event, **facts)
        report.event(event, **facts)

    def _whatever_is_asked(self, sight: Sight, version: tuple[int, ...], moment: datetime, now: float) -> _Always:
        """Return what is listed in any case: the same for all sessions, unless something holds in one of them only."""
        anywhere = attrs.evolve(sight, session="")
        always = self._kept_always((anywhere, "anywhere"), version, moment, now, partial(self._anywhere, anywhere))
        if not always.differs:
            return always
        return self._kept_always(sight, version, moment, now, partial(self._asked, sight))

    def _kept_always(
        self,
        key: Hashable,
        version: tuple[int, ...],
        moment: datetime,
        now: float,
        make: Callable[[datetime], _Always],
    ) -> _Always:
        always = self._always.get(key, version=version, now=now)
        if always is None:
            always = make(moment)
            ends = lasts((row.memory for row in always.recent), moment)
            self._always.put(key, always, version=version, now=now, lasts=ends)
        return always

    def _anywhere(self, sight: Sight, moment: datetime) -> _Always:
        """Return what is listed where nothing holds in one session only, and whether that is so."""
        some = self._recent(sight, moment, limit=1, scopes=("session",))
        return attrs.evolve(self._asked(sight, moment, scopes=("global", "project")), differs=bool(some))

    def _asked(self, sight: Sight, moment: datetime, **more: Any) -> _Always:
        recent = self._recent(sight, moment, limit=self._settings.limit, **more)
        return _Always(recent=tuple(Row(memory=memory, recent=True) for memory in recent))

    def _recent(self, sight: Sight, moment: datetime, *, limit: int, **more: Any) -> list[Memory]:
        after = moment - timedelta(days=self._settings.recent_days)
        return self._engine.store.recent(sight.filters(moment, after=after, **more), limit=limit)

    def _tell_index(self, index: PromptIndex, report: Report) -> None:
        facts = {"recent": index.recent, "relevant": index.relevant, "sessions": index.sessions}
        self._trace("memory_prompt_index_built", **facts, total=index.total)
        if index.rows < index.total:
            report.clipped("index", index.rows, index.total)
        self.tell("memory_prompt_index_injected", report, rows=index.rows, tokens=index.tokens)


def lasts(memories: Iterable[Memory], now: datetime) -> float | None:
    """Return after how many seconds the first of some memories ends, if one does."""
    ends = [end for each in memories for end in (each.expires_at, each.valid_until) if end is not None]
    return max(0.0, (min(ends) - now).total_seconds()) if ends else None
