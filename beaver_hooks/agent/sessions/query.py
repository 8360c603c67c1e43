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
from collections.abc import Mapping, Sequence

import attrs

BUDGET = 4000
MOST_TERMS = 24
MOST_COMMON = 3
LONGEST_QUERY = 10_000
"""The most characters of a query; the rest is ignored."""


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
