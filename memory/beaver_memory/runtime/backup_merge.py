"""Adds the memories of a copied database that another one lacks. Blocking.

In the database that the copy was made of, ids say which memories are the same: one that was changed there stays
changed, and one that was forgotten stays forgotten. In any other database a memory is the same by its words, owner and
place. An added memory gets a new id, and its history begins anew.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import attrs

from beaver_hostspecs import RestoreReport
from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.migration_rows import PAGE, changed_rows, rows_by_id
from beaver_memory.search.terms import Analyser
from beaver_memory.store.bounds import LARGEST
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.writer import Writer

MOST_NAMED = 20
"""Conflicts that are named; the others are counted."""

FORGOTTEN, CHANGED = "was forgotten since, and stays forgotten", "was changed since, and stays as it is"


@attrs.frozen
class Known:
    """Finds the memories of an owner that two databases share by their ids."""

    copy: SqliteStore
    store: SqliteStore
    filters: Filters
    rows: Mapping[int, IndexRow]

    def row(self, copied: IndexRow) -> IndexRow | None:
        """Return the row of the same memory in the database, or `None`.

        A database that was restored from an older copy has given ids to other memories since, at other moments.
        """
        here = self.rows.get(copied.id)
        if here is None or here.gone or here.updated == copied.updated:
            return here
        return here if self._added(self.store, copied.id) == self._added(self.copy, copied.id) else None

    def _added(self, store: SqliteStore, id_: int) -> datetime | None:
        return next((change.at for change in store.history(id_, self.filters)), None)


class Merge:
    """Merges the copy of a database into a database.

    Args:
        copy: the copy, which may be brought to this version.
        path: the database, which other processes may use meanwhile.
        now: the moment of the merge.
    """

    def __init__(self, copy: Path, path: Path, *, now: datetime) -> None:
        self._copy_path, self._path, self._now = copy, path, now
        self._counts: Counter[str] = Counter()
        self._conflicts: list[str] = []

    def run(self, *, dry: bool) -> RestoreReport:
        """Add the missing memories; with `dry` count only."""
        copy = SqliteStore.open(self._copy_path)
        try:
            store = SqliteStore.open(self._path)
            try:
                self._merge(copy, store, dry=dry)
            finally:
                store.close()
        finally:
            copy.close()
        counts, conflicts = self._counts, self._conflicts
        more = [f"{len(conflicts) - MOST_NAMED:,} more memories differ."] if conflicts[MOST_NAMED:] else []
        return RestoreReport(
            added={"memories": counts["added"], "summaries": counts["summaries"]},
            present={"memories": counts["present"]},
            conflicts=[*conflicts[:MOST_NAMED], *more],
        )

    def _merge(self, copy: SqliteStore, store: SqliteStore, *, dry: bool) -> None:
        Writer(copy, Analyser())
        writer = Writer(store, Analyser())
        is_same = copy.identity == store.identity
        for owner in copy.known_owners():
            filters = every_memory([owner], self._now)
            known = Known(copy, store, filters, rows_by_id(store, owner) if is_same else {})
            for page in self._pages(copy, owner, known):
                items = [writer.analysed(memory) for memory in page]
                lacking = [
                    item for item, there in zip(items, store.knows(items, now=self._now), strict=True) if not there
                ]
                self._counts["present"] += len(items) - len(lacking)
                # Two of them may be the same memory for the store.
                kept = [] if dry else store.remember(lacking, now=self._now, mention=False)
                self._counts["added"] += len(lacking) if dry else sum(each.outcome == "stored" for each in kept)
            self._summaries(copy, store, owner, dry=dry)

    def _pages(self, copy: SqliteStore, owner: Owner, known: "Known") -> Iterator[list[Memory]]:
        """Yield the memories of an owner that are not known by their ids."""
        ids = [row.id for row in changed_rows(copy, owner) if not row.gone and not self._is_known(row, known)]
        for start in range(0, len(ids), PAGE):
            yield copy.get(ids[start : start + PAGE], known.filters)

    def _is_known(self, row: IndexRow, known: "Known") -> bool:
        here = known.row(row)
        if here is None:
            return False
        if here.gone:
            self._conflicts.append(f"Memory {row.id} {FORGOTTEN}.")
        elif here.updated != row.updated:
            self._conflicts.append(f"Memory {row.id} {CHANGED}.")
        else:
            self._counts["present"] += 1
        return True

    def _summaries(self, copy: SqliteStore, store: SqliteStore, owner: Owner, *, dry: bool) -> None:
        there = {(each.session, each.agent) for each in store.summaries(owner, limit=LARGEST)}
        for each in copy.summaries(owner, limit=LARGEST):
            if (each.session, each.agent) not in there:
                self._counts["summaries"] += 1
                if not dry:
                    store.summarise(owner, each)
