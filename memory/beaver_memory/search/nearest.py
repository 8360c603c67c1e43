"""Another way to find the vectors that are nearest to a query than comparing those that the index holds itself."""

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from beaver_memory.errors import StoreError
from beaver_memory.records import Owner
from beaver_memory.search.block import keys_of
from beaver_memory.search.snapshot import Model, Part
from beaver_memory.store.extension import VecError
from beaver_memory.store.sqlite_vec import MOST, VecTable, VecTables

T = TypeVar("T")

FEW = 2_000
"""Units that are named one by one, where no more may be seen."""

Find = Callable[[Part, np.ndarray, np.ndarray | None, int], np.ndarray | None]
"""Returns the units of a part that are nearest to a query, in any order: `find(part, query, allowed, limit)`.

`allowed` says which units may be seen, `None` for all. `None` is returned where it cannot be told.
"""


class Nearest(Protocol):
    """Finds what is nearest to a query."""

    def finder(self, owner: Owner, model: Model) -> Find:
        """Return what finds among the vectors of an owner by a model."""

    def catch_up(self, owner: Owner, model: Model) -> None:
        """Take over what was embedded since."""


class TableSearch:
    """Finds by the tables of sqlite-vec. Thread-safe; where they cannot be used it says so once, and finds nothing.

    Args:
        tables: which.
        told: is given why they cannot be used, and `None` when they can be again.
    """

    def __init__(self, tables: VecTables, told: Callable[[str | None], object]) -> None:
        self._tables = tables
        self._told = told
        self._lock = threading.Lock()
        self._trouble: str | None = None
        self._off = False

    def begin(self) -> None:
        """Look whether the tables can be used."""
        self._try(self._tables.ensure)

    def catch_up(self, owner: Owner, model: Model) -> None:
        """Copy what was embedded since into the table."""
        table = self._tables.of(owner, model.key, model.dimensions)
        done: bool | None = False
        while done is False:
            done = self._try(table.catch_up)

    def finder(self, owner: Owner, model: Model) -> Find:
        """Return what finds among the vectors of an owner by a model."""
        table = self._tables.of(owner, model.key, model.dimensions)

        def find(part: Part, query: np.ndarray, allowed: np.ndarray | None, limit: int) -> np.ndarray | None:
            return self._try(lambda: _found(table, part, query, allowed, limit))

        return find

    def _try(self, work: Callable[[], T]) -> T | None:
        """Return what `work` returns; where it fails, tell it and return `None`."""
        if self._off:
            return None
        try:
            done = work()
        except VecError as error:
            # Nothing of this process makes it better: it is not tried with each search.
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
    # A table that is far behind is filled beside the searches.
    if part.vectors is None or not table.catch_up():
        return None
    seen = part.vectors.present if allowed is None else part.vectors.present & allowed
    keys, count = keys_of(part.block), int(np.count_nonzero(seen))
    limit = ahead = min(limit, count)
    if limit > MOST:
        return None
    while count > FEW and ahead <= MOST:
        # What may not be seen, and what is in another part, comes too: more is asked for until enough is left.
        rows = np.array(table.near(query, ahead), "i8")
        units = _among(keys, seen, rows)
        if len(units) >= limit or len(rows) < ahead:
            return units[:limit]
        ahead *= 4
    named = table.near(query, limit, keys[seen].tolist()) if limit else []
    return _among(keys, seen, np.array(named, "i8"))


def _among(keys: np.ndarray, seen: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the units of rows, in their order, as far as they may be seen."""
    places = np.minimum(keys.searchsorted(rows), len(keys) - 1)
    units: np.ndarray = places[(keys[places] == rows) & seen[places]]
    return units
