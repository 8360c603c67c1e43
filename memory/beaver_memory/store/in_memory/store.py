"""The store in the memory of a process, for any number of its threads."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import attrs

from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Change, DamagedEntry, Kept, Memory, Owner, Person, Scope, SessionSummary
from beaver_memory.store.bounds import bounded, usable
from beaver_memory.store.forgotten_texts import digests
from beaver_memory.store.in_memory import embeddings, figures, reads, writes
from beaver_memory.store.in_memory.tables import Database, OwnerTable, key_of, last_of, newer
from beaver_memory.store.in_memory.turn_queue import InMemoryTurnQueue
from beaver_memory.store.protocol import Analysed, IndexRow, VectorRow
from beaver_memory.store.shared import MemoryCopy
from beaver_memory.texts import cleaned, cleaned_all, micros, moment
from beaver_memory.views import Project

PLACE = "in memory"


class InMemoryStore:
    """Keeps memories until the process ends; see `SingleStore` for what each method does.

    Every method raises `StoreError` after `close`. Another store over the same database goes on.

    Args:
        database: the rows, which other stores may share; empty ones unless given.
    """

    def __init__(self, database: Database | None = None) -> None:
        self._database = Database() if database is None else database
        self._analyser: int | None = None
        self._closed = False

    @property
    def identity(self) -> str:
        """The random name of the database, made once."""
        return self._database.identity

    def close(self) -> None:
        """Close the store. Closing again does nothing."""
        self._closed = True

    # --- Memories -----------------------------------------------------------------------------------------------

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories, all or none of them; return their ids, in order."""
        with self._analysed() as database:
            return writes.add(database, items, now)

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that the store does not hold yet, all or none; return the outcome of each, in order."""
        with self._analysed() as database:
            return writes.remember(database, items, now, mention=mention)

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory and end the time of others, in one transaction; see `MemoryStore.supersede`."""
        with self._analysed() as database:
            return writes.supersede(database, item, ids, filters, at=at, now=now)

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return for each memory whether `remember` would find it in the store."""
        with self._locked() as database:
            return [writes.is_there(database, item, now) for item in items]

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`, each once."""
        with self._locked() as database:
            return [row.memory for row in reads.visible(database, ids, filters).values()]

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""
        with self._locked() as database:
            return reads.recent(database, filters, limit)

    def matching(self, patterns: Sequence[Pattern], filters: Filters, *, limit: int) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, newest first."""
        with self._locked() as database:
            return reads.matching(database, patterns, filters, limit)

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""
        with self._locked() as database:
            return reads.timeline(database, anchor, filters, before=before, after=after)

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""
        with self._locked() as database:
            return reads.neighbours(database, (at, id_), filters, before=before, after=after)

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""
        with self._locked() as database:
            writes.touch(database, tenant, usable(ids), now)

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist.

        Raises:
            TypeError: a field cannot be changed.
            ValueError: a value does not fit, or the text of the memory changes and `terms` or `length` is missing.
        """
        with self._analysed() as database:
            return writes.change(database, id_, filters, event=event, now=now, fields=fields)

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase text, terms, embeddings and history of visible memories; return their ids."""
        with self._locked() as database:
            return writes.forget(database, ids, filters, now)

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:  # noqa: ARG002 - no checksum
        """Erase the excerpts of turns from all memories of an owner that rest on them; return how many had one."""
        with self._owned(owner) as table:
            return writes.drop_evidence(table, {*turns})

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows hold content of memories of a tenant, by place."""
        with self._locked() as database:
            return writes.footprint(database, tenant, ids)

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the visible history of a visible memory, oldest first; changes in hidden stores are left out."""
        with self._locked() as database:
            return reads.history(database, id_, filters)

    # --- People and sessions ------------------------------------------------------------------------------------

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""
        with self._locked() as database:
            return reads.people(database, filters, query, limit)

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""
        with self._owned(owner) as table:
            ordered = sorted(table.summaries.values(), key=lambda each: (each.agent, each.session))
        ordered.sort(key=lambda each: each.created_at, reverse=True)
        return ordered[: bounded(limit)]

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store the summary of an agent's session in place of an earlier one."""
        kept = _cleaned_summary(summary)
        with self._locked() as database:
            database.made(owner).summaries[kept.agent, kept.session] = kept

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""
        wanted = None if sessions is None else {*map(cleaned, sessions)}
        with self._owned(owner) as table:
            gone = [key for key in table.summaries if wanted is None or key[1] in wanted]
            for key in gone:
                del table.summaries[key]
            return len(gone)

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten."""
        with self._locked() as database:
            table = database.table(owner)
            if table is not None and not table.rows:
                del database.tables[table.owner]

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows tell of an owner, by place: with content, or about capture."""
        with self._owned(owner) as table:
            return figures.holdings(table)

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""
        with self._owned(owner) as table:
            table.capture_days.clear()
            table.captured_turns.clear()
            table.forgotten_texts.clear()

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record that an owner has forgotten texts, by keyed hashes of their words."""
        with self._locked() as database:
            found = digests(database.identity.encode(), owner, texts)
            database.made(owner).forgotten_texts.update(found.values())

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten."""
        with self._owned(owner) as table:
            found = digests(self.identity.encode(), owner, texts)
            return {text for text, digest in found.items() if digest in table.forgotten_texts}

    # --- Capture ------------------------------------------------------------------------------------------------

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""
        with self._owned(owner) as table:
            return table.capture_days.get(day, CaptureSpend())

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`."""
        with self._locked() as database:
            days = database.made(owner).capture_days
            there = days.get(day, CaptureSpend())
            fits = there.fits(amount, most)
            if fits:
                days[day] = there.plus(amount)
            return fits

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured, whatever was found in them."""
        with self._owned(owner) as table:
            return {turn for turn in turns if cleaned(turn) in table.captured_turns}

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record that an owner's memories were captured from turns."""
        with self._locked() as database:
            database.made(owner).captured_turns.update(map(cleaned, turns))

    @property
    def queue(self) -> InMemoryTurnQueue:
        """The turns that wait to be captured."""
        return InMemoryTurnQueue(self._locked)

    # --- Questions of an index ----------------------------------------------------------------------------------

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return the versions of the newest change and the newest embedding of each owner, all from the same moment."""
        with self._locked() as database:
            tables = [database.table(owner) or OwnerTable(owner) for owner in owners]
            vectors = [{} if model is None else each.vectors.get(cleaned(model), {}) for each in tables]
            return [(last_of(each.changes), last_of(rows)) for each, rows in zip(tables, vectors, strict=True)]

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser, and keep them there: terms of an older analyser are made anew.

        Raises:
            StoreError: the terms are of a newer analyser. Later calls raise it too if another store brings in a newer
                one.
        """
        self._analyser = analyser
        with self._locked() as database:
            if database.analyser < analyser:
                _rebuild_terms(database, analyse)
                database.analyser = analyser
        with self._analysed():
            pass

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""
        with self._owned(owner) as table:
            return last_of(table.changes)

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""
        with self._analysed(), self._owned(owner) as table:
            return newer(table.changes, after, limit)

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""
        with self._owned(owner) as table:
            return len(table.rows)

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
        with self._owned(owner) as table:
            return reads.scoped(table, scopes)

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners that have memories, of a tenant or of all."""
        with self._tenant(tenant) as tables:
            return [table.owner for table in tables if table.rows]

    def unembedded(self, owner: Owner, model: str, project: Project, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of the memories that `pending` counts, newest first."""
        with self._owned(owner) as table:
            return embeddings.missing(table, cleaned(model), project, limit)

    def pending(self, owner: Owner, model: str, project: Project) -> int:
        """Return how many live memories of an owner in a project have no embedding by `model`."""
        with self._owned(owner) as table:
            return len(embeddings.waiting(table, cleaned(model), project))

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Replace the embeddings by `model`; skip memories whose text has changed since."""
        with self._owned(owner) as table:
            embeddings.put(table, cleaned(model), vectors, {} if texts is None else texts)

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions."""
        with self._owned(owner) as table:
            return newer(table.vectors.get(cleaned(model), {}), after, limit)

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant, by id."""
        with self._locked() as database:
            tables = [table for owner, table in database.tables.items() if owner.tenant == tenant]
            return embeddings.of_memories(tables, cleaned(model), ids)

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return their number."""
        with self._locked() as database:
            return embeddings.drop(database.tables.values(), cleaned(model))

    # --- The whole store ----------------------------------------------------------------------------------------

    def stats(self, tenant: str | None) -> Mapping[str, Any]:
        """Return figures: memories by store and type, embeddings by model, bytes in use."""
        with self._tenant(tenant) as tables:
            return figures.stats(tables)

    def check(self, tenant: str | None) -> list[str]:
        """Return the problems of a tenant or of all, one sentence each; an empty list if it is whole."""
        with self._tenant(tenant) as tables:
            return figures.problems(tables)

    def damaged(self, owner: Owner) -> list[DamagedEntry]:  # noqa: ARG002 - the protocol names it
        """Return no rows: none is stored."""
        return []

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:  # noqa: ARG002 - the protocol names them
        """Return no ids: no row is stored."""
        return []

    # --- Copies of another store --------------------------------------------------------------------------------

    def restore(self, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
        """Store memories under their ids and versions, in place of earlier copies."""
        with self._analysed() as database:
            writes.restore(database, owner, copies)

    def restore_vectors(self, owner: Owner, model: str, rows: Sequence[VectorRow]) -> None:
        """Store embeddings under their versions."""
        with self._owned(owner) as table:
            for row in rows:
                if row.id in table.rows:
                    table.restore_vector(cleaned(model), row)

    @contextlib.contextmanager
    def _tenant(self, name: str | None) -> Iterator[list[OwnerTable]]:
        with self._locked() as database:
            yield [each for owner, each in database.tables.items() if name is None or owner.tenant == cleaned(name)]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Database]:
        with self._database.lock:
            if self._closed:
                raise StoreError(PLACE, "closed")
            yield self._database

    @contextlib.contextmanager
    def _analysed(self) -> Iterator[Database]:
        """Refuse to mix terms of this store's analyser with those of a newer one."""
        with self._locked() as database:
            if self._analyser is not None and database.analyser > self._analyser:
                raise StoreError(PLACE, "newer")
            yield database

    @contextlib.contextmanager
    def _owned(self, owner: Owner) -> Iterator[OwnerTable]:
        """Lend the table of an owner; an empty one, which is not kept, for an owner that never wrote."""
        with self._locked() as database:
            yield database.table(owner) or OwnerTable(key_of(owner))


def _rebuild_terms(database: Database, analyse: Callable[[Memory], Analysed]) -> None:
    made = [(table, id_, analyse(row.memory)) for table in database.tables.values() for id_, row in table.rows.items()]
    for table, id_, item in made:
        table.set_terms(id_, item.terms, item.length)


def _cleaned_summary(summary: SessionSummary) -> SessionSummary:
    return attrs.evolve(
        summary,
        session=cleaned(summary.session),
        agent=cleaned(summary.agent),
        request=cleaned(summary.request),
        outcome=cleaned(summary.outcome),
        decisions=cleaned_all(summary.decisions),
        open_items=cleaned_all(summary.open_items),
        created_at=moment(micros(summary.created_at)),
    )
