"""Runs a search: counts terms, queries the index, and cuts snippets."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.agent.sessions.query import BUDGET, LONGEST_QUERY, MOST_TERMS, SearchScope, expressions, one
from beaver_hooks.agent.sessions.records import SearchHit
from beaver_hooks.agent.sessions.sums import DamagedMessages, is_whole
from beaver_hooks.agent.sessions.terms import query_terms
from beaver_hooks.agent.sessions.texts import decode, searchable
from beaver_hooks.agent.sessions.writes import begun_with

if TYPE_CHECKING:
    import apsw

SNIPPET = 160
"""Characters of a snippet."""
SEARCHED_FOR_SNIPPET = 50_000
"""Characters of a message that are searched for the place of the snippet."""


def search(
    connection: "apsw.Connection", query: str, limit: int, scope: SearchScope, damaged: DamagedMessages
) -> list[SearchHit]:
    """Return the messages that fit the query best, best first, without damaged ones; note these."""
    wanted = query_terms(query[:LONGEST_QUERY], MOST_TERMS)
    counts = {term: _count(connection, scope.limit(one(term))) for term in wanted}
    found: dict[int, float] = {}
    for expression in expressions(counts):
        rows: list[Any] = connection.execute(SQL["find_messages"], (scope.limit(expression), BUDGET, limit)).fetchall()
        # Hits of a later expression rank lower, with any score within it.
        worst = min(found.values(), default=math.inf)
        found |= {number: min(-score, worst) for number, score in rows if number not in found}
        if len(found) >= limit:
            break
    each = (_hit(connection, number, score, wanted, damaged) for number, score in [*found.items()][:limit])
    return [hit for hit in each if hit is not None]


def hits(
    connection: "apsw.Connection", numbers: Sequence[int], words: str, damaged: DamagedMessages
) -> list[SearchHit]:
    """Return the messages with these numbers, with snippets around the words, without damaged ones; note these."""
    wanted = query_terms(words[:LONGEST_QUERY], MOST_TERMS)
    each = (_hit(connection, number, 0.0, wanted, damaged) for number in numbers)
    return [hit for hit in each if hit is not None]


def snippet(text: str, wanted: Sequence[str]) -> str:
    """Return a part of a text around the first of the terms, else its beginning; on one line."""
    head = text[:SEARCHED_FOR_SNIPPET]
    found = re.search("|".join(map(_place, wanted)), head, re.IGNORECASE)
    start = max(0, found.start() - SNIPPET // 4) if found else 0
    words = " ".join(head[start : start + SNIPPET].split())
    return "\u2026" * (start > 0) + words + "\u2026" * (start + SNIPPET < len(text))


def _place(term: str) -> str:
    # A single letter is in most words; as a term it begins one.
    return (r"\b" if term.isascii() else "") + re.escape(term)


def _count(connection: "apsw.Connection", expression: str) -> int:
    return int(connection.execute(SQL["count_matches"], (expression, BUDGET)).get)


def _hit(
    connection: "apsw.Connection", number: int, score: float, wanted: Sequence[str], damaged: DamagedMessages
) -> SearchHit | None:
    found: Any = connection.execute(SQL["found_message"], (number,)).get
    if found is None or not is_whole(found[4:], found[3]):
        damaged.note("message", number)
        return None
    session, owner, user, _, _, role, text, at, *_ = found
    return SearchHit(
        session=session,
        user=user,
        trust=begun_with(connection, owner),
        role="user" if role == b"user" else "assistant",
        when=datetime.fromisoformat(at.decode()),
        snippet=snippet(searchable(decode(text)), wanted),
        score=score,
    )
