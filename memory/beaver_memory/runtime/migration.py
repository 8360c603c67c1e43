"""Copies a store whole into one tenant of a server: memories, history, embeddings and summaries. Blocking.

Ids and versions stay the same. The ids of the person's memories are those that a project shows, and their versions lie
above those of the project. Each page is one transaction, and a copy that is there already is left alone: so an
interrupted migration continues where it was, and a later one brings over what has changed since. At the end every row
is read from both stores and compared by a digest; rows that differ are copied once more.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from beaver_memory.errors import InvalidRequest
from beaver_memory.filters import Filters, every_memory
from beaver_memory.records import Memory, Owner, SessionSummary
from beaver_memory.runtime.migration_rows import (
    PAGE,
    Mark,
    Marks,
    Part,
    add_vector,
    changed_rows,
    count_others,
    digest_of_copy,
    is_copied,
    missing_rows,
    moved_vector,
    owners_of,
    parts_of,
    rows_by_id,
    vector_rows,
)
from beaver_memory.runtime.profile import Location, PostgresLocation
from beaver_memory.store.bounds import LARGEST
from beaver_memory.store.changes import renumbered, renumbered_change
from beaver_memory.store.joint import EVERYWHERE
from beaver_memory.store.protocol import IndexRow, MemoryCopy, MemoryStore, SharedStore
from beaver_memory.texts import moment
from beaver_memory.views import tenant_within

Progress = Callable[[int, int, str], object]
"""Receives how many memories are done, how many there are, and the name of the step."""


@attrs.frozen(kw_only=True)
class MigrationReport:
    """The result of a migration, or of its dry run.

    Attributes:
        owners: how many owners the store has.
        memories: how many memories that are not forgotten.
        forgotten: how many forgotten memories; their ids are never used again.
        embeddings: how many embeddings, by model.
        summaries: how many summaries of sessions.
        copied: how many memories this run has copied, forgotten ones included; in a dry run those that are missing.
        differences: what differs afterwards, one sentence each; empty if both stores hold the same.
    """

    owners: int = 0
    memories: int = 0
    forgotten: int = 0
    embeddings: Mapping[str, int] = attrs.field(factory=dict)
    summaries: int = 0
    copied: int = 0
    differences: tuple[str, ...] = ()


class Migration:
    """Copies a store into a tenant.

    Args:
        source: the store.
        target: the store of the tenant; its terms are of the same analyser.
        here, there: where both lie: memories of the project of the one become those of the project of the other.
        now: the moment of the migration.
        progress: called after each step.

    Raises:
        InvalidRequest: the tenant holds memories that are not of this store, or have changed there since.
    """

    def __init__(
        self,
        source: MemoryStore,
        target: SharedStore,
        here: Location,
        there: PostgresLocation,
        *,
        now: datetime,
        progress: Progress,
    ) -> None:
        self._parts = parts_of(source)
        self._models = sorted(source.stats(None)["embeddings"])
        self._target, self._now, self._progress = target, now, progress
        self._here, self._there = here, there
        self._done, self._total = 0, 0

    def run(self, *, dry: bool = False) -> MigrationReport:
        """Copy what the tenant lacks, and compare both stores; with `dry` count only."""
        owners = list(dict.fromkeys(owner for part in self._parts for owner in owners_of(part.store)))
        marks = {owner: self._marks(owner) for owner in owners}
        named = {owner: self._named(owner) for owner in owners}
        tenants = {self._there.tenant, *(each.tenant for each in named.values())}
        known = (owner for tenant in tenants for owner in self._target.owners(tenant))
        there = {owner: rows_by_id(self._target, owner) for owner in {*named.values(), *known}}
        self._refuse_others({named[owner]: each for owner, each in marks.items()}, there)
        missing = {owner: missing_rows(marks[owner], there[named[owner]]) for owner in owners}
        self._total = sum(map(len, missing.values()))
        report = self._report(marks)
        if dry:
            return report
        for owner in owners:
            self._copy(owner, missing[owner])
        different = {owner: self._different(owner) for owner in owners}
        for owner in owners:
            # A recall gives no version, and a row may be damaged: such rows are copied again.
            self._copy(owner, {id_: mark for id_, mark in marks[owner].items() if id_ in different[owner]})
        return attrs.evolve(report, differences=tuple(self._differences(different)))

    def _marks(self, owner: Owner) -> Marks:
        found: Marks = {}
        for part in self._parts:
            for row in changed_rows(part.store, owner):
                if is_copied(part, row):
                    found[row.id + part.ids] = Mark(part, row.version + part.versions, row.gone, row.created)
        return found

    def _refuse_others(self, marks: Mapping[Owner, Marks], there: Mapping[Owner, Mapping[int, IndexRow]]) -> None:
        others = sum(count_others(marks.get(owner, {}), rows) for owner, rows in there.items())
        if others:
            raise InvalidRequest(
                "to",
                f"holds memories that are not of this store, or have changed there since ({others:,}), and a copy would"
                " replace them; name another tenant, or copy the texts with `beaver memory export` and `beaver memory"
                " add --json-lines`",
            )

    def _copy(self, owner: Owner, missing: Marks) -> None:
        for part in self._parts:
            mine = [(id_, mark) for id_, mark in missing.items() if mark.part is part]
            for page in _pages(sorted(mine, key=lambda each: each[1].version)):
                copies = map(self._in_tenant, self._copies(part, owner, dict(page)))
                self._target.restore(self._named(owner), [*copies])
                self._done += len(page)
                self._progress(self._done, self._total, "copying")
            for model in self._models:
                self._embed(part, owner, model)
        for summary in self._summaries(owner):
            self._target.summarise(self._named(owner), summary)

    def _copies(self, part: Part, owner: Owner, page: Marks) -> Iterator[MemoryCopy]:
        """Yield the copies of a page's rows; a row that has changed meanwhile comes in its new state."""
        left = {id_ - part.ids for id_ in page}
        rows = []
        for row in changed_rows(part.store, owner, min(mark.version for mark in page.values()) - part.versions - 1):
            if row.id in left:
                rows.append(row)
                left.discard(row.id)
            if not left:
                break
        yield from self._page(part, owner, rows)

    def _copied(self, part: Part, row: IndexRow, memory: Memory | None, filters: Filters) -> MemoryCopy:
        moved = attrs.evolve(row, id=row.id + part.ids, version=row.version + part.versions)
        if memory is None or row.gone:
            return MemoryCopy(row=moved, memory=None, added_at=moment(round(row.updated * 1_000_000)))
        added, *changes = part.store.history(row.id, filters)
        history = tuple(renumbered_change(each, part.ids) for each in changes)
        return MemoryCopy(row=moved, memory=renumbered(memory, part.ids), added_at=added.at, history=history)

    def _embed(self, part: Part, owner: Owner, model: str) -> None:
        named = self._named(owner)
        there = {row.id: row.version for row in vector_rows(self._target, named, model)}
        moved = (moved_vector(part, row) for row in vector_rows(part.store, owner, model))
        for page in _pages([row for row in moved if there.get(row.id) != row.version]):
            self._target.restore_vectors(named, model, page)
            self._progress(self._done, self._total, "copying embeddings")

    def _summaries(self, owner: Owner) -> list[SessionSummary]:
        # The summaries of sessions belong to the project.
        parts = [part for part in self._parts if not part.everywhere]
        return [each for part in parts for each in part.store.summaries(owner, limit=LARGEST)]

    def _report(self, marks: Mapping[Owner, Marks]) -> MigrationReport:
        every = [mark for each in marks.values() for mark in each.values()]
        gone = sum(mark.gone for mark in every)
        counts = {
            model: sum(len(vector_rows(part.store, owner, model)) for part in self._parts for owner in marks)
            for model in self._models
        }
        return MigrationReport(
            owners=len(marks),
            memories=len(every) - gone,
            forgotten=gone,
            embeddings=counts,
            summaries=sum(len(self._summaries(owner)) for owner in marks),
            copied=self._total,
        )

    # --- Comparison ---------------------------------------------------------------------------------------------

    def _differences(self, before: Mapping[Owner, set[int]]) -> Iterator[str]:
        """Yield what differs between both stores, by owner; owners without a difference before are not read again."""
        for owner, wrong in before.items():
            if left := sorted(self._different(owner)) if wrong else []:
                yield f"{len(left):,} memories of the user {owner.user!r} differ, the first is {left[0]}."
            if self._summaries(owner) != self._target.summaries(self._named(owner), limit=LARGEST):
                yield f"Summaries of sessions of the user {owner.user!r} differ."

    def _different(self, owner: Owner) -> set[int]:
        ours, unchanged = self._digests(owner)
        theirs = self._digests_of_target(self._named(owner), unchanged)
        self._progress(self._done, self._total, "comparing")
        return {id_ for id_ in {*ours, *theirs} if ours.get(id_) != theirs.get(id_)}

    def _digests(self, owner: Owner) -> tuple[dict[int, bytes], set[int]]:
        """Return the digests of an owner's memories by their new ids, and the ids of those that never changed."""
        found: dict[int, bytes] = {}
        unchanged: set[int] = set()
        for part in self._parts:
            rows = [row for row in changed_rows(part.store, owner) if is_copied(part, row)]
            for page in _pages(rows):
                for copy in self._page(part, owner, page):
                    found[copy.row.id] = digest_of_copy(self._in_tenant(copy))
                    if copy.memory is not None and not copy.history and copy.added_at == copy.memory.updated_at:
                        unchanged.add(copy.row.id)
            for model in self._models:
                for row in vector_rows(part.store, owner, model):
                    add_vector(found, row.id + part.ids, model, attrs.evolve(row, version=row.version + part.versions))
        return found, unchanged

    def _digests_of_target(self, owner: Owner, unchanged: Collection[int]) -> dict[int, bytes]:
        """Return the digests of the copies; the history of a memory that never changed is not asked for."""
        found: dict[int, bytes] = {}
        whole = Part(store=self._target)
        for page in _pages([*changed_rows(self._target, owner)]):
            found |= {copy.row.id: digest_of_copy(copy) for copy in self._page(whole, owner, page, unchanged)}
        for model in self._models:
            for row in vector_rows(self._target, owner, model):
                add_vector(found, row.id, model, row)
        return found

    def _page(
        self, part: Part, owner: Owner, rows: Iterable[IndexRow], unchanged: Collection[int] = ()
    ) -> Iterator[MemoryCopy]:
        given = [*rows]
        filters = every_memory([owner], self._now)
        memories = {memory.id: memory for memory in part.store.get([row.id for row in given], filters)}
        for row in given:
            memory = memories.get(row.id)
            if memory is not None and row.id in unchanged:
                yield MemoryCopy(row=row, memory=memory, added_at=memory.updated_at)
            else:
                yield self._copied(part, row, memory, filters)

    def _in_tenant(self, copy: MemoryCopy) -> MemoryCopy:
        """Return a copy with the owner and the project that it gets in the tenant."""
        memory = copy.memory
        if memory is None:
            return copy
        is_ours = memory.project in {"", self._here.project} and (memory.project or memory.scope != EVERYWHERE)
        project = self._there.project or "" if is_ours else memory.project
        return attrs.evolve(copy, memory=attrs.evolve(memory, owner=self._named(memory.owner), project=project))

    def _named(self, owner: Owner) -> Owner:
        return attrs.evolve(owner, tenant=tenant_within(self._there.tenant, owner.tenant))


def _pages(items: list[Any]) -> Iterator[list[Any]]:
    return (items[begin : begin + PAGE] for begin in range(0, len(items), PAGE))
