"""Adds the memories of a copied database that another one lacks. Blocking.

A memory is the same by its uid, else by its words, owner and place. One that was forgotten stays forgotten; one that
was changed in the database that the copy was made of stays changed. An added memory keeps its uid; its id and its
history are new.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from beaver_hostspecs import RestoreReport
from beaver_memory.filters import every_memory
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.migration_rows import PAGE, changed_rows
from beaver_memory.search.terms import Analyser
from beaver_memory.store.bounds import LARGEST
from beaver_memory.store.protocol import IndexRow
from beaver_memory.store.sqlite import SqliteStore
from beaver_memory.writer import Writer

MOST_NAMED = 20
"""Conflicts that are named; the others are counted."""

FORGOTTEN, CHANGED = "was forgotten since, and stays forgotten", "was changed since, and stays as it is"


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
            rows = {row.uid: row for row in changed_rows(store, owner)}
            ids = [each.id for each in changed_rows(copy, owner) if not self._is_known(each, rows, is_same=is_same)]
            for page in self._pages(copy, owner, ids):
                items = [writer.analysed(memory) for memory in page]
                lacking = [
                    item for item, there in zip(items, store.knows(items, now=self._now), strict=True) if not there
                ]
                self._counts["present"] += len(items) - len(lacking)
                # Two of them may be the same memory for the store.
                kept = [] if dry else store.remember(lacking, now=self._now, mention=False)
                self._counts["added"] += len(lacking) if dry else sum(each.outcome == "stored" for each in kept)
            self._summaries(copy, store, owner, dry=dry)

    def _pages(self, copy: SqliteStore, owner: Owner, ids: Sequence[int]) -> Iterator[list[Memory]]:
        filters = every_memory([owner], self._now)
        for start in range(0, len(ids), PAGE):
            yield copy.get(ids[start : start + PAGE], filters)

    def _is_known(self, row: IndexRow, rows: Mapping[bytes, IndexRow], *, is_same: bool) -> bool:
        """Count a memory that is known by its uid; `is_same` in the database that the copy was made of."""
        here = rows.get(row.uid)
        if row.gone or here is None:
            return row.gone
        if here.gone:
            self._conflicts.append(f"Memory {here.id} {FORGOTTEN}.")
        elif is_same and here.updated != row.updated:
            self._conflicts.append(f"Memory {here.id} {CHANGED}.")
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
