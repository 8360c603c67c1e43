"""Finds the candidates of a search in an owner's memories without an index in memory."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.store.candidate_store import CandidateRows, Wanted
from beaver_memory.store.postgres import embeddings
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import salted
from beaver_memory.store.postgres.sql_filters import conditions
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import index_row_of
from beaver_memory.views import ALL_PROJECTS, View

_SQL = queries_of("postgres", "candidates")

RARE = 0.05
"""The share of an owner's memories up to which a word finds candidates; a commoner one only scores them."""

SPARE = 4
"""Candidates by words for each wanted one, as their order is rough."""

WINDOW = 8
"""Memories before and after another one in time, among which its neighbours in the session are looked for."""

_FEW = 10
"""Memories without any of the words, added to the count, as the ranking does."""


@attrs.frozen(kw_only=True)
class Counted:
    """Figures of all that a search may see, of one moment, and the candidates by words.

    Attributes:
        live: how many memories the owner has.
        memories: how many of them are visible.
        length: how many terms these have together.
        frequencies: how many of these have each term.
        best: memories with one of the rarer words, roughly in the order of the ranking.
    """

    live: int
    memories: int = 0
    length: int = 0
    frequencies: Mapping[int, int] = attrs.field(factory=dict)
    best: Sequence[int] = ()


class CandidateSearch:
    """Finds candidates of one owner: `counted` and `nearest` in any order or at once, then `found`.

    Args:
        key: the owner.
        filters: the conditions for visible memories.
        model: number and name of the model of the vectors.
        wanted: the query.
    """

    def __init__(self, key: OwnerKey, filters: Filters, model: tuple[int, str], wanted: Wanted) -> None:
        self._key = key
        self._model = model
        self._wanted = wanted
        self._which = conditions(filters)
        self._params = self._which.params | {"tenant": key.tenant, "owner": key.owner, "model": model[0]}
        self.is_open = _is_open(filters)

    def counted(self, connection: Any) -> Counted:
        """Return the figures and the candidates by words; the connection sees one moment."""
        row = next(iter(self._read(connection, "figures" if self.is_open else "visible_figures")), (0, 0, 0))
        live, memories, length = map(int, row)
        if not memories:
            return Counted(live=live)
        words = dict(zip(self._wanted.terms, salted(self._key, self._wanted.terms), strict=True))
        frequencies = self._frequencies(connection, words)
        known = {words[term]: count for term, count in frequencies.items() if count}
        best = self._best_by_words(connection, known, memories, length / memories)
        return Counted(live=live, memories=memories, length=length, frequencies=frequencies, best=best)

    def nearest(self, connection: Any, *, hides: bool = False) -> list[int]:
        """Return the memories that are nearest by vectors.

        Args:
            connection: a connection.
            hides: whether the filters hide memories.
        """
        if not self._wanted.vector:
            return []
        visible = _SQL["visible"].format(conditions=self._which.sql) if hides else ""
        vector = self._wanted.vector
        given = {"vector": embeddings.half_of(vector), "dimensions": len(vector) // 2, "limit": self._wanted.width}
        return [id_ for (id_,) in self._execute(connection, _SQL["nearest"].format(visible=visible), given)]

    def found(self, connection: Any, counted: Counted, near: Sequence[int] | None) -> CandidateRows:
        """Return the candidates.

        Args:
            connection: a connection that sees one moment.
            counted: the result of `counted`.
            near: the result of `nearest` without filters, `None` if they hide memories by where these belong.
        """
        if not counted.memories:
            return CandidateRows()
        if near is None or counted.memories < counted.live:
            near = self.nearest(connection, hides=counted.memories < counted.live)
        links = self._links(connection, [*counted.best[: self._wanted.width], *near])
        ids = list(dict.fromkeys([*counted.best, *near, *(id_ for pair in links for id_ in pair)]))
        rows = self._read(connection, "rows", ids=ids)
        vectors = self._read(connection, "vectors", ids=ids) if self._wanted.vector else ()
        return CandidateRows(
            rows=tuple(map(index_row_of, rows)),
            vectors=tuple(embeddings.whole(vectors, self._model[1])),
            neighbours=links,
            memories=counted.memories,
            length=counted.length,
            frequencies=counted.frequencies,
        )

    def _frequencies(self, connection: Any, words: Mapping[int, int]) -> dict[int, int]:
        """Return how many visible memories have each term."""
        if not words:
            return {}
        given = {f"word{place}": [word] for place, word in enumerate(words.values())}
        each = ", ".join(_SQL["frequency"].format(word=name, conditions=self._which.of_live) for name in given)
        (row,) = self._execute(connection, _SQL["frequencies"].format(each=each), given)
        return dict(zip(words, row, strict=True))

    def _best_by_words(self, connection: Any, frequencies: Mapping[int, int], memories: int, mean: float) -> list[int]:
        """Return memories with one of the rarer words, roughly in the order of the ranking.

        Args:
            connection: a connection.
            frequencies: how many memories have each word.
            memories: how many memories there are.
            mean: their mean length.
        """
        width = self._wanted.width
        rare = _rarer(frequencies, enough=SPARE * width, most=RARE * memories)
        if not rare:
            return []
        given: dict[str, Any] = {"rare": rare, "limit": SPARE * width, "mean": max(mean, 1.0)}
        weights = []
        for place, (word, count) in enumerate(frequencies.items()):
            weights.append(_SQL["weight"].format(word=f"word{place}", weight=f"weight{place}"))
            rarity = math.log(1 + (memories + _FEW - count + 0.5) / (count + 0.5))
            given |= {f"word{place}": [word], f"weight{place}": rarity}
        sql = _SQL["best_by_words"].format(score=" + ".join(weights), conditions=self._which.of_live)
        return [id_ for (id_,) in self._execute(connection, sql, given)]

    def _links(self, connection: Any, ids: Sequence[int]) -> frozenset[tuple[int, int]]:
        """Return pairs of memories that follow one another in a session, of which some are one."""
        earlier, later = (
            _SQL["link"].format(side=side, order=order, conditions=self._which.sql)
            for side, order in (("<", "DESC"), (">", "ASC"))
        )
        given = {"ids": [*dict.fromkeys(ids)], "window": WINDOW}
        rows = self._execute(connection, _SQL["links"].format(earlier=earlier, later=later), given)
        found = [pair for id_, before, after in rows for pair in ((before, id_), (id_, after))]
        return frozenset((one, other) for one, other in found if one is not None and other is not None)

    def _read(self, connection: Any, name: str, **given: Any) -> Iterable[Sequence[Any]]:
        return self._execute(connection, _SQL[name].format(conditions=self._which.sql), given)

    def _execute(self, connection: Any, sql: str, given: dict[str, Any]) -> Iterable[Sequence[Any]]:
        rows: Iterable[Sequence[Any]] = connection.execute(sql, self._params | given, binary=True).fetchall()
        return rows


def _rarer(frequencies: Mapping[int, int], *, enough: int, most: float) -> list[int]:
    """Return the rarest words that find enough memories, and further ones as long as they find few.

    Args:
        frequencies: how many memories have each word.
        enough: memories that are enough.
        most: the most memories to find beyond that.
    """
    found: list[int] = []
    total = 0
    for word, count in sorted(frequencies.items(), key=lambda each: each[1]):
        if total >= enough and total + count > most:
            break
        found.append(word)
        total += count
    return found


def _is_open(filters: Filters) -> bool:
    """Return whether filters hide only the memories that do not hold now."""
    view = View(owners=filters.view.owners, project=ALL_PROJECTS, now=filters.view.now)
    return filters == Filters(view=view, lapsed=filters.lapsed)
