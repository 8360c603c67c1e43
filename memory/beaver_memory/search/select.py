"""Selects the best ranked memories: each once, without near-duplicates, within the token limit. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

import attrs
import numpy as np

from beaver_memory.filters import Filters
from beaver_memory.query import Hit, Query
from beaver_memory.records import Memory
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.search.top_k import contenders

FIRST_SPARE = 1
"""Memories beyond the limit that are read at first."""

SPARE = 8
"""Memories that are then read at once, to replace near-duplicates."""

FURTHER = 4
"""The factor of the search width if all of those were near-duplicates."""

ALIKE = 0.9
"""The share of common words above which two texts count as the same."""

_CLOSE = 0.02
_AS_LONG = 0.7
_READ = 4_000
"""Characters by which texts are compared."""

_WORD = re.compile(r"\w+")
_PLAIN = "".join(chr(code).lower() if _WORD.match(chr(code)) else " " for code in range(128))
"""The class of each ASCII character for splitting a text into words."""


@attrs.frozen(kw_only=True)
class Choice:
    """A memory that may be shown, before it is read.

    Attributes:
        id: the memory.
        score: the score of its best passage.
        passage: the number of its best passage.
        place: its place among the candidates, or -1.
    """

    id: int
    score: float
    passage: int = 0
    place: int = -1


def best_of(found: Candidates, ranked: Ranked, query: Query) -> Iterator[Choice]:
    """Yield the memories that score enough, best first, each by its best passage.

    Memories far beyond the limit are computed only on demand.
    """
    given, wanted = 0, query.limit + FIRST_SPARE + SPARE
    while True:
        chosen = _best(found, ranked.scores, query.minimum_score, wanted)
        for id_, score, passage, place in chosen[given:]:
            yield Choice(id=id_, score=score, passage=passage, place=place)
        if len(chosen) < wanted:
            return
        given, wanted = wanted, FURTHER * wanted


_Row = tuple[int, float, int, int]
"""Id, score, passage and place of a choice: few choices are ever read."""


def _best(found: Candidates, scores: np.ndarray, minimum: float, wanted: int) -> list[_Row]:
    # Mostly the candidates that come first are of enough memories.
    places = contenders(scores, 2 * wanted)
    chosen = _choices(found, scores, places, minimum, wanted)
    if len(chosen) < wanted and len(places) < found.size and scores[places].min() >= minimum:
        chosen = _choices(found, scores, np.arange(found.size), minimum, wanted)
    return chosen


def _choices(found: Candidates, scores: np.ndarray, places: np.ndarray, minimum: float, wanted: int) -> list[_Row]:
    """Return the memories of some candidates, best first."""
    ids, passages, scores = found.columns["ids"][places], found.columns["passages"][places], scores[places]
    # The newest of equal ones; candidates are in order of memories.
    order = np.lexsort((passages, -ids, -scores))
    chosen: dict[int, _Row] = {}
    columns = (each[order].tolist() for each in (ids, scores, passages, places))
    for row in zip(*columns, strict=True):
        if row[1] < minimum or len(chosen) >= wanted:
            break
        chosen.setdefault(row[0], row)
    return list(chosen.values())


def hits(
    choices: Iterable[Choice],
    read: Callable[[list[int]], Iterable[Memory]],
    shares: Mapping[str, np.ndarray],
    query: Query,
) -> tuple[Hit, ...]:
    """Return the hits among the choices that can be read, best first.

    Args:
        choices: the choices, best first.
        read: reads memories; called again only while some of the first ones are not shown.
        shares: the share of each signal, by candidate.
        query: the query.
    """
    shown, rest, count = _Shown(query), iter(choices), query.limit + FIRST_SPARE
    while shown.takes_more and (part := list(islice(rest, count))):
        count = SPARE
        memories = {memory.id: memory for memory in read([choice.id for choice in part])}
        for choice in part:
            if shown.takes_more and choice.id in memories:
                shown.add(choice, memories[choice.id], shares)
    return tuple(shown.hits)


def holding_first(found: Sequence[Hit], filters: Filters) -> tuple[Hit, ...]:
    """Return hits with those that hold at the moment of the filters before the others, otherwise in the same order."""
    at = filters.as_of or filters.view.now
    return tuple(sorted(found, key=lambda hit: not _holds(hit.memory, at)))


def _holds(memory: Memory, at: datetime) -> bool:
    return (
        (memory.valid_from is None or memory.valid_from <= at)
        and (memory.valid_until is None or memory.valid_until > at)
        and (memory.expires_at is None or memory.expires_at > at)
    )


class _Shown:
    """Collects hits within the token limit."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._spent = 0
        self._words: dict[int, frozenset[str]] = {}
        self.hits: list[Hit] = []
        self.takes_more = True

    def add(self, choice: Choice, memory: Memory, shares: Mapping[str, np.ndarray]) -> None:
        """Add a memory unless a hit says the same; end the selection if it exceeds the token limit."""
        if self._is_said(memory, choice.score):
            return
        most = self._query.max_tokens
        self._spent += memory.token_count
        if self.hits and most is not None and self._spent > most:
            self.takes_more = False
            return
        explained = {}
        if self._query.explain:
            explained = {name: round(float(share[choice.place]), 6) for name, share in shares.items()}
        self.hits.append(Hit(memory=memory, score=choice.score, passage=choice.passage, shares=explained))
        self.takes_more = len(self.hits) < self._query.limit

    def _is_said(self, memory: Memory, score: float) -> bool:
        """Return whether one of the hits says the same. Texts that say the same have nearly the same score."""
        for hit in reversed(self.hits):
            if hit.score - score > _CLOSE * abs(hit.score):
                return False
            if _as_long(memory.token_count, hit.memory.token_count, _AS_LONG) and _alike(
                self._words_of(memory), self._words_of(hit.memory)
            ):
                return True
        return False

    def _words_of(self, memory: Memory) -> frozenset[str]:
        known = self._words.get(memory.id)
        if known is None:
            # Most memories consist of a title only.
            text = memory.text if memory.narrative or memory.facts else memory.title
            known = self._words[memory.id] = words(text[:_READ])
        return known


def words(text: str) -> frozenset[str]:
    """Return the words of a text, regardless of case."""
    if text.isascii():
        return frozenset(text.translate(_PLAIN).split())
    return frozenset(_WORD.findall(text.casefold()))


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if not _as_long(len(one), len(other), ALIKE):
        return False
    common = len(one & other)
    return common >= ALIKE * max(1, len(one) + len(other) - common)


def _as_long(one: int, other: int, share: float) -> bool:
    return one >= share * other and other >= share * one
