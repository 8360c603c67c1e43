"""Searches vectors in tables of sqlite-vec, as an alternative to the vectors of the index."""

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.search.block import keys_of
from beaver_memory.search.snapshot import Model, Part
from beaver_memory.store.sqlite.extension import VecError
from beaver_memory.store.sqlite.sqlite_vec import MOST, VecTable, VecTables

T = TypeVar("T")

FEW = 2_000
"""Units that a query may list one by one, if no more are visible."""

Find = Callable[[Part, np.ndarray, np.ndarray | None, int], np.ndarray | None]
"""Returns the units of a part that are nearest to a query, in any order: `find(part, query, allowed, limit)`.

`allowed` is the mask of visible units, `None` for all. The result is `None` if the search failed.
"""


class Nearest(Protocol):
    """Finds the vectors nearest to a query."""

    def finder(self, owner: Owner, model: Model) -> Find:
        """Return a function that searches the vectors of an owner by a model."""

    def catch_up(self, owner: Owner, model: Model) -> None:
        """Copy new embeddings."""


class TableSearch:
    """Searches the tables of sqlite-vec. Thread-safe; if they cannot be used, reports it once and finds no units.

    Args:
        tables: the tables.
        told: called with the reason why they cannot be used, and with `None` when they can be used again.
    """

    def __init__(self, tables: VecTables, told: Callable[[str | None], object]) -> None:
        self._tables = tables
        self._told = told
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._off = False

    def begin(self) -> None:
        """Check whether the tables can be used."""
        self._try(self._tables.ensure)

    def catch_up(self, owner: Owner, model: Model) -> None:
        """Copy new embeddings into the table."""
        table = self._tables.of(owner, model.key, model.dimensions)
        done: bool | None = False
        while done is False:
            done = self._try(table.catch_up)

    def finder(self, owner: Owner, model: Model) -> Find:
        """Return a function that searches the vectors of an owner by a model."""
        table = self._tables.of(owner, model.key, model.dimensions)

        def find(part: Part, query: np.ndarray, allowed: np.ndarray | None, limit: int) -> np.ndarray | None:
            return self._try(lambda: _found(table, part, query, allowed, limit))

        return find

    def _try(self, work: Callable[[], T]) -> T | None:
        """Return the result of `work`; if it fails, report it and return `None`."""
        if self._off:
            return None
        try:
            done = work()
        except VecError as error:
            # This process cannot repair the fault: searches do not try it again.
            self._off = True
            self._tell(error.category)
            return None
        except StoreError as error:
            self._tell(error.category)
            return None
        self._tell(None)
        return done

    def _tell(self, trouble: str | None) -> None:
        with self._lock:
            changed, self._trouble = self._trouble != trouble, trouble
        if changed:
            self._told(trouble)


def _found(table: VecTable, part: Part, query: np.ndarray, allowed: np.ndarray | None, limit: int) -> np.ndarray | None:
    # A table that is far behind is filled outside of searches.
    if part.vectors is None or not table.catch_up():
        return None
    seen = part.vectors.present if allowed is None else part.vectors.present & allowed
    keys, count = keys_of(part.block), int(np.count_nonzero(seen))
    limit = ahead = min(limit, count)
    if limit > MOST:
        return None
    while count > FEW and ahead <= MOST:
        # The result includes hidden units and units of other parts: the limit grows until enough are left.
        rows = np.array(table.near(query, ahead), "i8")
        units = _among(keys, seen, rows)
        if len(units) >= limit or len(rows) < ahead:
            return units[:limit]
        ahead *= 4
    named = table.near(query, limit, keys[seen].tolist()) if limit else []
    return _among(keys, seen, np.array(named, "i8"))


def _among(keys: np.ndarray, seen: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the visible units of rows, in the order of the rows."""
    places = np.minimum(keys.searchsorted(rows), len(keys) - 1)
    units: np.ndarray = places[(keys[places] == rows) & seen[places]]
    return units
