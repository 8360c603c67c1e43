"""The prompt index: a compact list of memories, so that a model knows which ones it can look up. Pure.

Memories of the last days come first, whatever the prompt; relevant memories fill the rest of the list. A row costs
little: id, store, type, title, score, mentions and date. The tool `memory_get` shows the whole memory of a row.

A host takes references in order until one does not fit, and its bound is not known here. So the list consists of short
pages, each a reference of its own: a small bound costs the last pages, and never the whole list.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

import attrs
from attrs import field

from beaver_hooks_local.recall.already_said import opening
from beaver_hostspecs import Reference
from beaver_hostspecs.tokens import estimate_tokens
from beaver_memory.query import Hit
from beaver_memory.records import Memory, SessionSummary
from beaver_memory.runtime.hit_texts import heading, in_line

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
