"""The prompt index and its contents: recent memories of each session, cached until a write, and hits of each search.

Blocking.
"""

from collections.abc import Container, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any

import attrs
from attrs import field

from beaver_hooks_local.recall.already_said import Conversation, opening
from beaver_hooks_local.recall.recall_cache import Answers, RecentItems
from beaver_hooks_local.settings import PromptIndexSettings
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import Reference, Report, Trust
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.errors import EngineError
from beaver_memory.query import Hit
from beaver_memory.records import Memory, SessionSummary
from beaver_memory.runtime.hit_texts import heading, in_line
from beaver_memory.runtime.operations import Operations
from beaver_memory.runtime.requests import ListRequest, SessionsRequest

SECONDS = 600.0
"""How long the recent memories are cached, unless a memory is written."""

SHOWN = 4
"""Renderings of one list that are cached; turns differ in the memories that they leave out."""

KIND = "index"
ID = "index"
HEADING = "Memory index. Columns: [id] store type: title (score, mentions, date). `memory_get` shows a whole entry."
MORE = "Memory index, continued:"
SESSIONS = "Recent sessions:"
MOST_SESSIONS = 5
PAGE = 300
"""Tokens of a page, approximately."""

_PROVENANCE = 20
"""Tokens that a host spends on the provenance of a page, at most; every page has the same."""

_CUT = "(the list is cut off here)"


@attrs.frozen(kw_only=True)
class Row:
    """A memory in the list; a recent one may have no score.

    Attributes:
        memory: the memory.
        score: its score, if the search found it.
        recent: it is listed whatever the prompt.
    """

    memory: Memory
    score: float | None = None
    recent: bool = False

    @cached_property
    def text(self) -> str:
        """The line that shows it."""
        memory = self.memory
        facts = [] if self.score is None else [f"{self.score:.2f}"]
        facts += [f"x{memory.mention_count}"] if memory.mention_count > 1 else []
        facts += [f"{memory.created_at:%Y-%m-%d}"] if memory.created_at else []
        pinned = " pinned" if memory.pinned else ""
        kind = f"{memory.store} {in_line(memory.type)}{pinned}"
        return f"[{memory.id}] {kind}: {heading(memory)} ({', '.join(facts)})"

    @cached_property
    def tokens(self) -> int:
        """The tokens of that line."""
        return _cost(self.text)

    @cached_property
    def opening(self) -> str:
        """The first line of the memory, as `already_said.opening` returns it."""
        return opening(self.memory)


@attrs.frozen(kw_only=True)
class PromptIndex:
    """The list as it is shown.

    Attributes:
        pages: the texts; none if no row fits.
        recent, relevant, sessions: how many rows of each kind.
        total: how many rows there were.
        tokens: of all references.
    """

    pages: tuple[str, ...] = field(default=(), repr=False)
    recent: int = 0
    relevant: int = 0
    sessions: int = 0
    total: int = 0
    tokens: int = 0

    @property
    def rows(self) -> int:
        """How many memories it lists."""
        return self.recent + self.relevant

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The pages as references."""
        return tuple(
            Reference(text=text, kind=KIND, id=ID if number == 1 else f"{ID}-{number}", source="memory.local")
            for number, text in enumerate(self.pages, 1)
        )


def merged(recent: Sequence[Row], relevant: Sequence[Hit], *, limit: int) -> list[Row]:
    """Return the rows: recent ones first, relevant ones behind them, each memory once, at most `limit`."""
    found = {hit.memory.id: hit for hit in relevant}
    listed = {row.memory.id for row in recent[:limit]}
    first = [
        Row(memory=row.memory, score=found[row.memory.id].score, recent=True) if row.memory.id in found else row
        for row in recent[:limit]
    ]
    rest = [hit for hit in relevant if hit.memory.id not in listed]
    return [*first, *(Row(memory=hit.memory, score=hit.score) for hit in rest[: limit - len(first)])]


def rendered(rows: Sequence[Row], sessions: Sequence[str], *, max_tokens: int) -> PromptIndex:
    """Return the list with as many rows as fit, in order.

    Args:
        rows: the memories, in order.
        sessions: lines of the sessions, newest first.
        max_tokens: the bound of all pages together.
    """
    pages = _Pages(max_tokens)
    shown = pages.put(HEADING, ((row.text, row.tokens) for row in rows))
    told = pages.put(SESSIONS, ((line, _cost(line)) for line in sessions)) if shown == len(rows) else 0
    if not pages.lines:
        return PromptIndex(total=len(rows))
    if shown < len(rows):
        pages.lines[-1].append(_CUT)
    recent = sum(row.recent for row in rows[:shown])
    return PromptIndex(
        pages=tuple(map("\n".join, pages.lines)),
        recent=recent,
        relevant=shown - recent,
        sessions=told,
        total=len(rows),
        tokens=pages.spent,
    )


def session_line(summary: SessionSummary) -> str:
    """Return the line that shows a session."""
    what = in_line(summary.outcome or summary.request, 120)
    counted = f"{summary.observation_count} memories"
    return f"- {summary.created_at:%Y-%m-%d} {in_line(summary.session)}: {what or counted}"


class _Pages:
    """Pages of lines, within a bound of tokens for all of them."""

    def __init__(self, max_tokens: int) -> None:
        self.lines: list[list[str]] = []
        self.spent = _cost(_CUT)
        self._most, self._page = max_tokens, 0

    def put(self, title: str, lines: Iterable[tuple[str, int]]) -> int:
        """Add lines with their tokens, as many as fit; return how many. Each page has a title."""
        shown = 0
        for line, cost in lines:
            head = title if not shown or title != HEADING else MORE
            under = cost if shown else cost + _cost(head)
            begins = not self.lines or self._page + under > PAGE
            spent = _PROVENANCE + _cost(head) + cost if begins else under
            if self.spent + spent > self._most:
                break
            self._add(line, head if begins or not shown else None, spent, begins=begins)
            shown += 1
        return shown

    def _add(self, line: str, head: str | None, spent: int, *, begins: bool) -> None:
        if begins:
            self.lines.append([])
            self._page = 0
        self.lines[-1] += [line] if head is None else [head, line]
        self._page += spent
        self.spent += spent


def _cost(line: str) -> int:
    return estimate_tokens(line) + 1


@attrs.frozen(kw_only=True)
class Listing:
    """Memories and sessions that the prompt index may list.

    Attributes:
        rows: memories.
        sessions: lines that show sessions.
        shown: the rendered lists, by the memories left out and the most tokens.
    """

    rows: tuple[Row, ...] = ()
    sessions: tuple[str, ...] = field(default=(), repr=False)
    shown: RecentItems[PromptIndex] = field(init=False, factory=partial(RecentItems, SHOWN), repr=False, eq=False)


@attrs.frozen(kw_only=True)
class _Anywhere:
    """The recent memories that every session sees.

    Attributes:
        rows: of the newest memories.
        differs: some memories hold in one session only, so sessions see different lists.
    """

    rows: tuple[Row, ...] = ()
    differs: bool = False


class Listings:
    """Makes lists, and caches the parts that do not depend on the prompt. Thread-safe.

    Args:
        operations: of the memory.
        settings: of the prompt index.
    """

    def __init__(self, operations: Operations, settings: PromptIndexSettings) -> None:
        self._operations, self._settings = operations, settings
        self._clock, self._trace = operations.clock, operations.trace
        self._kept: Answers[Listing] = Answers(SECONDS)
        self._anywhere: Answers[_Anywhere] = Answers(SECONDS)

    def recent(self, sight: Visibility, version: tuple[int, ...], report: Report) -> Listing | None:
        """Return the part of a session's list that no prompt changes; `None` if the index is off or the memory fails.

        A failure goes to the trace and the report; the turn goes on.
        """
        if not self._settings.enabled:
            return None
        moment, now = self._clock.now(), self._clock.monotonic()
        kept = self._kept.get(sight, version=version, now=now)
        if kept is not None:
            return kept
        try:
            made = self._made(sight, version, moment, now)
        except EngineError as error:
            self.tell("memory_prompt_index_failed", report, error=type(error).__name__)
            return None
        self._kept.put(sight, made, version=version, now=now, lasts=_lasting(made.rows, moment))
        return made

    def lacking(self, recent: Listing | None) -> int:
        """Return how many more rows fit beside the recent ones."""
        return 0 if recent is None else self._settings.limit - len(recent.rows)

    def filled(self, recent: Listing | None, hits: Sequence[Hit]) -> Listing:
        """Return the list of a search: recent memories, then hits."""
        if recent is None:
            return Listing()
        found = {hit.memory.id for hit in hits}
        if not self.lacking(recent) and not any(row.memory.id in found for row in recent.rows):
            # The recent memories fill the list, which may be rendered already.
            return recent
        return Listing(rows=tuple(merged(recent.rows, hits, limit=self._settings.limit)), sessions=recent.sessions)

    def references(
        self, listing: Listing, without: set[int], conversation: Conversation, room: int | None, report: Report
    ) -> tuple[Reference, ...]:
        """Return a list as references, without some memories and those that the conversation shows.

        Args:
            listing: the list.
            without: the ids of the memories that the turn is given, or must not be given.
            conversation: of the turn.
            room: the tokens that are left, or `None`.
            report: of the turn.
        """
        most = self._settings.max_tokens if room is None else min(self._settings.max_tokens, room)
        left_out = frozenset(
            row.memory.id for row in listing.rows if row.memory.id in without or conversation.shows(row)
        )
        index = listing.shown.once((left_out, most), partial(_shown, listing, left_out, most))
        if index.pages:
            self._tell_index(index, report)
        else:
            some = "budget" if index.total or listing.sessions else "empty"
            self.skipped(some if self._settings.enabled else "off", report)
        return index.references

    def skipped(self, reason: str, report: Report) -> None:
        """Record why a turn has no prompt index."""
        self._trace("memory_prompt_index_skipped", reason=reason)
        if reason not in {"gate", "off"}:
            report.event("memory_prompt_index_skipped", reason=reason)

    def tell(self, event: str, report: Report, **facts: str | int) -> None:
        """Record an event in the trace and the report."""
        self._trace(event, **facts)
        report.event(event, **facts)

    def _made(self, sight: Visibility, version: tuple[int, ...], moment: datetime, now: float) -> Listing:
        anywhere = self._in_every_session(attrs.evolve(sight, session=""), version, moment, now)
        rows = self._rows(sight, moment) if anywhere.differs else anywhere.rows
        if sight.trust is not Trust.FULL:
            return Listing(rows=rows)
        last = self._operations.sessions(SessionsRequest(owner=sight.owner, limit=MOST_SESSIONS)).sessions
        return Listing(rows=rows, sessions=tuple(map(session_line, last)))

    def _in_every_session(self, sight: Visibility, version: tuple[int, ...], moment: datetime, now: float) -> _Anywhere:
        """Return the recent memories that every session sees, and whether some memories hold in one session only."""
        anywhere = self._anywhere.get(sight, version=version, now=now)
        if anywhere is None:
            rows = self._rows(sight, moment, scopes=("global", "project"))
            differs = bool(self._recent(sight, moment, limit=1, scopes=("session",)))
            anywhere = _Anywhere(rows=rows, differs=differs)
            self._anywhere.put(sight, anywhere, version=version, now=now, lasts=_lasting(rows, moment))
        return anywhere

    def _rows(self, sight: Visibility, moment: datetime, **more: Any) -> tuple[Row, ...]:
        recent = self._recent(sight, moment, limit=self._settings.limit, **more)
        return tuple(Row(memory=memory, recent=True) for memory in recent)

    def _recent(self, sight: Visibility, moment: datetime, *, limit: int, **more: Any) -> tuple[Memory, ...]:
        after = moment - timedelta(days=self._settings.recent_days)
        visible = sight.filters(moment, after=after, **more)
        return self._operations.list(ListRequest(visible=visible, limit=limit)).memories

    def _tell_index(self, index: PromptIndex, report: Report) -> None:
        facts = {"recent": index.recent, "relevant": index.relevant, "sessions": index.sessions}
        self._trace("memory_prompt_index_built", **facts, total=index.total)
        if index.rows < index.total:
            report.clipped("index", index.rows, index.total)
        self.tell("memory_prompt_index_injected", report, rows=index.rows, tokens=index.tokens)


def _shown(listing: Listing, left_out: Container[int], max_tokens: int) -> PromptIndex:
    rows = [row for row in listing.rows if row.memory.id not in left_out]
    return rendered(rows, listing.sessions, max_tokens=max_tokens)


def _lasting(rows: Iterable[Row], now: datetime) -> float | None:
    return lasts((row.memory for row in rows), now)


def lasts(memories: Iterable[Memory], now: datetime) -> float | None:
    """Return the seconds until the first of some memories expires, or `None` if none does."""
    ends = [end for each in memories for end in (each.expires_at, each.valid_until) if end is not None]
    return max(0.0, (min(ends) - now).total_seconds()) if ends else None
