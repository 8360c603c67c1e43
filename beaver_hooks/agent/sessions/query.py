"""Expressions for the search index whose cost does not grow with the number of messages. Pure.

FTS5 scores every row that matches any term of an OR; that is the whole cost. So:

1. Count the messages (of the scope) that have each term; the count stops at `BUDGET`.
2. Rarest first, terms *lead* as long as their counts stay within `BUDGET` together. Rows with a leading term come
   first; the other terms only add to their score.
3. If that finds too little, rows with all of the `MOST_COMMON` longest other terms come next, then rows with any.
4. In each case at most the `BUDGET` newest rows that match are scored.

Terms are quoted and contain only letters, digits and symbols, so no part of a query is FTS5 syntax.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

from beaver_hooks.agent.sessions.database import SQL
from beaver_hooks.agent.sessions.reads import begun_with
from beaver_hooks.agent.sessions.records import SearchHit
from beaver_hooks.agent.sessions.sums import DamagedMessages, is_whole
from beaver_hooks.agent.sessions.texts import decode, searchable
from beaver_toolkit.words import HANGUL, INDIC, LONGEST, SPACELESS, SYMBOLS, pairs

if TYPE_CHECKING:
    import apsw


BUDGET = 4000
MOST_TERMS = 24
MOST_COMMON = 3
LONGEST_QUERY = 10_000
"""The most characters of a query; the rest is ignored."""

_STOP_WORDS = """
a about after all also am an and any are as at be because been before being but by can could did do does doing
for from had has have having he her here hers him his how i if in into is it its just me more most my no nor not
of off on once only or other our ours out over own same she should so some such than that the their theirs them
then there these they this those through to too under until up us very was we were what when where which while
who whom why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_UNSPACED = SPACELESS + HANGUL
# The vowel signs of the scripts of India are no letters for `\w`, and belong to their words.
_LETTER = rf"[^\W_]|[{INDIC}]"

SNIPPET = 160
"""Characters of a snippet."""
SEARCHED_FOR_SNIPPET = 50_000
"""Characters of a message that are searched for the place of the snippet."""


@attrs.frozen(kw_only=True)
class SearchScope:
    """The scope of a search: scope terms as the index has them."""

    within: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def limit(self, expression: str) -> str:
        """Return the expression for the matches in the scope."""
        limited = " AND ".join([f"({expression})", *(f'scope : "{term}"' for term in self.within)])
        return " NOT ".join([f"({limited})", *(f'scope : "{term}"' for term in self.without)])


def session_term(number: int) -> str:
    """Return the scope term of a session."""
    return f"s{number}"


def user_term(user: str) -> str:
    """Return the scope term of a user. It ends in a digit, so that stemming does not merge two users."""
    digest = hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=16)
    return f"u{digest.hexdigest()}0"


def any_of(terms: Sequence[str]) -> str:
    """Return the expression for rows with at least one of the terms."""
    return " OR ".join(map(one, terms))


def all_of(terms: Sequence[str]) -> str:
    """Return the expression for rows with all of the terms."""
    return " AND ".join(map(one, terms))


def one(term: str) -> str:
    """Return the expression for rows with a term."""
    return f'terms : "{term}"'


def expressions(counts: Mapping[str, int]) -> list[str]:
    """Return the expressions to search for, one after the other until enough messages are found.

    Args:
        counts: the terms, each with the number of messages that have it, not counted beyond `BUDGET`.
    """
    found = sorted((term for term in counts if counts[term]), key=lambda term: counts[term])
    leading = _leading(found, counts)
    common = sorted(found[len(leading) :], key=len, reverse=True)[:MOST_COMMON]
    asked = [_led(leading, found)] if leading else []
    if common:
        asked += [" AND ".join(map(one, common)), any_of(common)]
    return list(dict.fromkeys(asked))


def _led(leading: Sequence[str], found: Sequence[str]) -> str:
    return any_of(found) if leading == found else f"({any_of(leading)}) AND ({any_of(found)})"


def _leading(found: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    leading, total = list[str](), 0
    for term in found:
        total += counts[term]
        if total >= BUDGET:
            break
        leading.append(term)
    return leading


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"([{_UNSPACED}]+)|((?:(?![{_UNSPACED}])(?:{_LETTER}))+)|([{SYMBOLS}])")


def terms(text: str) -> Iterator[str]:
    """Yield the terms to index for a text."""
    for run, word, symbol in _pattern().findall(fold(text)):
        if run:
            yield from run
            yield from pairs(run)
        else:
            yield (word or symbol)[:LONGEST]


def query_terms(text: str, most: int) -> list[str]:
    """Return the terms to search for, each once: the first `most`, without stop-words unless all are stop-words.

    Several adjacent characters of a script without spaces are searched as pairs, which are more specific.
    """
    found = dict.fromkeys(_asked(text))
    wanted = [term for term in found if term not in STOP_WORDS] or [*found]
    return wanted[:most]


def fold(text: str) -> str:
    """Return a text in the form for comparison."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    # Only the accents of the European scripts: other scripts write vowels with marks.
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", decomposed))


def _asked(text: str) -> Iterator[str]:
    for run, word, symbol in _pattern().findall(fold(text)):
        if len(run) > 1:
            yield from pairs(run)
        else:
            yield (run or word or symbol)[:LONGEST]


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
