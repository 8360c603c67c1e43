"""Takes the best memories from what was ranked: each once, no near-duplicates, within what they may cost. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import attrs
import numpy as np

from beaver_memory.query import Hit, Query
from beaver_memory.records import Memory
from beaver_memory.search.candidates import Candidates
from beaver_memory.search.formulas import Ranked
from beaver_memory.search.top_k import contenders

FIRST_SPARE = 1
"""Memories beyond the limit that are read at first."""

SPARE = 8
"""Memories that are read at once beyond those, to take the places of near-duplicates."""

FURTHER = 4
"""How many times as many are looked for, where all of those were near-duplicates."""

ALIKE = 0.9
"""The share of common words from which on two texts say the same."""

_CLOSE = 0.02
_AS_LONG = 0.7
_READ = 4_000
"""Characters by which texts are compared."""

_WORD = re.compile(r"\w+")
_PLAIN = "".join(chr(code).lower() if _WORD.match(chr(code)) else " " for code in range(128))
"""What each character of ASCII is in a text that is to be cut into words."""


@attrs.frozen(kw_only=True)
class Choice:
    """A memory that may be shown, before it is read.

    Attributes:
        id: the memory.
        score: of its best passage.
        passage: which one that is.
        place: its place among the candidates, or -1.
    """

    id: int
    score: float
    passage: int = 0
    place: int = -1


def best_of(found: Candidates, ranked: Ranked, query: Query) -> Iterator[Choice]:
    """Give the memories that score enough, the best first, each by its best passage.

    Those beyond some more than are wanted are only looked for when they are asked for.
    """
    given, wanted = 0, query.limit + FIRST_SPARE + SPARE
    while True:
        chosen = _best(found, ranked.scores, query.minimum_score, wanted)
        yield from chosen[given:]
        if len(chosen) < wanted:
            return
        given, wanted = wanted, FURTHER * wanted


def _best(found: Candidates, scores: np.ndarray, minimum: float, wanted: int) -> list[Choice]:
    # Mostly the candidates that come first are of enough memories.
    places = contenders(scores, 2 * wanted)
    chosen = _choices(found, scores, places, minimum, wanted)
    if len(chosen) < wanted and len(places) < found.size and scores[places].min() >= minimum:
        chosen = _choices(found, scores, np.arange(found.size), minimum, wanted)
    return chosen


def _choices(found: Candidates, scores: np.ndarray, places: np.ndarray, minimum: float, wanted: int) -> list[Choice]:
    """Return the memories of some candidates, the best first."""
    ids, passages, scores = found.columns["ids"][places], found.columns["passages"][places], scores[places]
    # The newest of equal ones; candidates are in order of memories.
    order = np.lexsort((passages, -ids, -scores))
    chosen: dict[int, Choice] = {}
    columns = (each[order].tolist() for each in (ids, scores, passages, places))
    for id_, score, passage, place in zip(*columns, strict=True):
        if score < minimum or len(chosen) >= wanted:
            break
        if id_ not in chosen:
            chosen[id_] = Choice(id=id_, score=score, passage=passage, place=place)
    return list(chosen.values())


def hits(
    choices: Iterable[Choice],
    read: Callable[[list[int]], Iterable[Memory]],
    shares: Mapping[str, np.ndarray],
    query: Query,
) -> tuple[Hit, ...]:
    """Return what is shown of the choices that can be read, the best first.

    Args:
        choices: the best first.
        read: reads memories; asked for more of them only as long as some of the first ones are not shown.
        shares: what each signal adds, by candidate.
        query: what was asked.
    """
    shown, rest, count = _Shown(query), iter(choices), query.limit + FIRST_SPARE
    while shown.takes_more and (part := list(islice(rest, count))):
        count = SPARE
        memories = {memory.id: memory for memory in read([choice.id for choice in part])}
        for choice in part:
            if shown.takes_more and choice.id in memories:
                shown.add(choice, memories[choice.id], shares)
    return tuple(shown.hits)


class _Shown:
    """Collects hits within what they may cost."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._spent = 0
        self._words: dict[int, frozenset[str]] = {}
        self.hits: list[Hit] = []
        self.takes_more = True

    def add(self, choice: Choice, memory: Memory, shares: Mapping[str, np.ndarray]) -> None:
        """Take a memory, unless one that says the same is there, or it costs too much: then it is the end."""
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
        """Whether one of the hits says the same. Texts that say the same score nearly the same."""
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
            # Most memories are a title and no more.
            text = memory.text if memory.narrative or memory.facts else memory.title
            known = self._words[memory.id] = words(text[:_READ])
        return known


def words(text: str) -> frozenset[str]:
    """Return the words of a text, in whatever case they are written."""
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
