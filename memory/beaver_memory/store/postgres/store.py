"""The store in a PostgreSQL database, for any number of processes of any number of machines."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from typing import Any

from beaver_hostspecs import Secret
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters, every_memory
from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Change, DamagedEntry, Kept, Memory, Owner, Person, Scope, SessionSummary
from beaver_memory.store.bounds import usable
from beaver_memory.store.candidate_store import CandidateRows, Wanted
from beaver_memory.store.changes import view_of
from beaver_memory.store.fingerprint import digests
from beaver_memory.store.postgres import (
    embeddings,
    inserts,
    integrity,
    people,
    reads,
    rebuild_terms,
    tenants,
    turn_queue,
    update,
    upsert,
    versions,
)
from beaver_memory.store.postgres.candidates import CandidateSearch
from beaver_memory.store.postgres.connector import Connector
from beaver_memory.store.postgres.embeddings import ModelNumbers
from beaver_memory.store.postgres.owners import IdBlocks, OwnerKey, OwnerNumbers, live, live_owners, tenant_of
from beaver_memory.store.postgres.pool import MOST
from beaver_memory.store.postgres.sql_filters import Seen, seen
from beaver_memory.store.postgres.turn_queue import PostgresTurnQueue
from beaver_memory.store.protocol import Analysed, IndexRow, MemoryCopy, VectorRow
from beaver_memory.texts import micros
from beaver_memory.views import Project, stored

SCHEMA = "beaver_memory"
"""The schema of the tables, unless another one is given."""


class PostgresStore:
    """Keeps memories in one PostgreSQL database; see `MemoryStore` for what each method does.

    Every method raises `StoreError` where the database cannot be used, and says what to do; the next call tries
    again. A store belongs to the process that opened it.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._owners = OwnerNumbers()
        self._models = ModelNumbers()
        self._ids = IdBlocks()
        self._analyser: int | None = None

    @classmethod
    def open(
        cls,
        url: Secret,
        *,
        schema: str = SCHEMA,
        connections: int = MOST,
        connect_seconds: int | None = None,
        later: bool = False,
        **options: Any,
    ) -> "PostgresStore":
        """Open the store in a database, and make its tables if they are missing.

        Args:
            url: `postgresql://user:password@host:port/database`, with the options of libpq.
            schema: the schema of the tables.
            connections: how many connections this process may have; half of them are for searches.
            connect_seconds: how long a connection may take to be made; as the address says unless given.
            later: whether the store connects when it is first used, so that a server may be down until then.
            options: `told` and `clock`; see `Connector`.

        Raises:
            StoreError: the database cannot be used; the error says why and what to do, and shows no credential.
        """
        connector = Connector(url, schema, connections, connect_seconds=connect_seconds, **options)
        try:
            if not later:
                connector.open()
        except BaseException:
            connector.close()
            raise
        return cls(connector)

    @property
    def place(self) -> str:
        """Host, port and name of the database."""
        return self._connector.place

    @property
    def identity(self) -> str:
        """A random name of this store, made once."""
        return self._connector.identity

    def close(self) -> None:
        """Close the store. Closing again does nothing."""
        self._connector.close()

    # --- Memories -----------------------------------------------------------------------------------------------

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories in one transaction; return their ids, in order."""
        if not items:
            return []
        keys, ids = self._prepared(items)
        given = [next(ids[keys[item.memory.owner].tenant]) for item in items]
        with self._writing(pipelined=len(items) < inserts.COPIED) as connection:
            inserts.add(connection, items, keys, given, now)
        return given

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that the store does not hold yet, in one transaction; return the outcome of each, in order."""
        if not items:
            return []
        keys, ids = self._prepared(items)
        with self._writing(pipelined=len(items) < inserts.COPIED) as connection:
            return upsert.remember(connection, items, keys, ids, now, mention=mention)

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory and end the time of others, in one transaction; see `MemoryStore.supersede`."""
        keys, new_ids = self._prepared([item])
        view = view_of(item, filters)
        with self._writing() as connection:
            (kept,) = upsert.remember(connection, [item], keys, new_ids, now, mention=True)
            which = seen(connection, self._owners, view)
            return upsert.ended(connection, which, kept, ids, at=at, now=now)

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return for each memory whether `remember` would find it in the store."""
        with self._connector.reading() as connection:
            keys = {owner: key for owner in _owners(items) if (key := self._owners.key(connection, owner)) is not None}
            return upsert.knows(connection, items, keys, now)

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`, each once."""
        with self._seen(filters) as (connection, which):
            found = reads.visible(connection, which, ids)
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""
        with self._seen(filters) as (connection, which):
            return reads.recent(connection, which, limit)

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""
        with self._seen(filters, moment=True) as (connection, which):
            return reads.timeline(connection, which, anchor, before=before, after=after)

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""
        with self._seen(filters, moment=True) as (connection, which):
            return reads.neighbours(connection, which, (micros(at), id_), before=before, after=after)

    def matching(
        self, patterns: Sequence[Pattern], filters: Filters, *, limit: int, terms: Collection[int] = ()
    ) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, newest first.

        With `terms`, only memories that have all of these need to be among them.
        """
        with self._seen(filters) as (connection, which):
            return reads.matching(connection, which, patterns, limit, terms)

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""
        if which := usable(ids):
            with self._connector.reading() as connection:
                update.touch(connection, self._owners.tenant(connection, tenant), which, now)

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist.

        If no value differs, the store writes nothing.

        Raises:
            TypeError: a field cannot be changed.
            ValueError: a value does not fit, or the text of the memory changes and `terms` or `length` is missing.
        """
        with self._writing() as connection:
            which = seen(connection, self._owners, filters)
            return update.change(connection, which, id_, event=event, now=now, fields=fields)

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase text, terms, embeddings and the texts in the history of visible memories; return their ids.

        PostgreSQL keeps the erased rows in its files until VACUUM removes them.
        """
        with self._connector.writing() as connection:
            which = seen(connection, self._owners, filters)
            every = seen(connection, self._owners, every_memory(filters.view.owners, now))
            return update.forget(connection, which, every, ids, now)

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:
        """Erase the excerpts of turns from all memories of an owner that rest on them; return how many had one."""
        every = every_memory([owner], now)
        with self._connector.writing() as connection:
            return update.drop_evidence(connection, seen(connection, self._owners, every), turns)

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows hold content of memories of a tenant, by place."""
        with self._connector.reading() as connection:
            return update.footprint(connection, self._owners.tenant(connection, tenant), usable(ids))

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the visible history of a visible memory, oldest first; changes in hidden stores are left out."""
        with self._seen(filters, moment=True) as (connection, which):
            found = reads.visible(connection, which, [id_])
            return reads.history(connection, which, found[id_], filters.view.stores) if found else []

    # --- People and sessions ------------------------------------------------------------------------------------

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""
        with self._seen(filters) as (connection, which):
            return people.people(connection, which, query, limit)

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""
        with self._owned(owner) as (connection, key):
            return people.summaries(connection, key, owner, limit)

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store a session's summary in place of an earlier one."""
        with self._connector.reading() as connection:
            people.summarise(connection, self._owners.give(connection, owner), owner, summary)

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""
        with self._owned(owner) as (connection, key):
            return people.drop_summaries(connection, key, sessions)

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten."""
        with self._connector.writing() as connection:
            self._owners.drop(connection, owner)

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows tell of an owner, by place: with content, or about capture."""
        with self._connector.reading() as connection:
            return self._owners.holdings(connection, owner)

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""
        with self._connector.writing() as connection:
            self._owners.drop_capture_records(connection, owner)

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record that an owner has forgotten texts, by keyed hashes of their words."""
        found = digests(self.identity.encode(), owner, texts)
        if found:
            with self._connector.reading() as connection:
                turn_queue.mark_forgotten(connection, self._owners.give(connection, owner), found.values())

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten."""
        with self._owned(owner) as (connection, key):
            return turn_queue.forgotten(connection, key, digests(self.identity.encode(), owner, texts))

    # --- Capture ------------------------------------------------------------------------------------------------

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""
        with self._owned(owner) as (connection, key):
            return turn_queue.spent(connection, key, day)

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`."""
        with self._connector.reading() as connection:
            return turn_queue.spend(connection, self._owners.give(connection, owner), day, amount, most)

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured, whatever was found in them."""
        with self._owned(owner) as (connection, key):
            return turn_queue.captured(connection, key, turns)

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record that an owner's memories were captured from turns."""
        if turns:
            with self._connector.reading() as connection:
                turn_queue.mark_captured(connection, self._owners.give(connection, owner), turns)

    @property
    def queue(self) -> PostgresTurnQueue:
        """The turns that wait to be captured."""
        return PostgresTurnQueue(self._connector, self._owners)

    # --- Questions of an index ----------------------------------------------------------------------------------

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return the versions of the newest change and the newest embedding of each owner, all from the same moment.

        Raises:
            ValueError: the owners are of several tenants.
        """
        name = tenant_of(owners)
        if not owners:
            return []
        with self._connector.reading() as connection:
            keys = self._owners.keys(connection, owners)
            number = 0 if model is None else self._models.number(connection, model)
            found = versions.last_versions(connection, self._owners.tenant(connection, name), keys, number)
        return [found.get(owner, (0, 0)) for owner in owners]

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser as soon as the database can be used; keep a failure for the first call.

        Terms of an older analyser are made anew.

        Raises:
            StoreError: the terms are of a newer analyser. Later calls raise it too if another process brings in a newer
                one.
        """
        self._analyser = analyser
        try:
            self._connector.open(lambda: self._settle(analyser, analyse))
        except StoreError as error:
            if error.category == "newer":
                raise

    def _settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        with self._connector.reading() as connection:
            why = rebuild_terms.trouble(rebuild_terms.analyser_of(connection), analyser)
        while why == "replaced_database":
            with self._connector.settling() as connection:
                why = rebuild_terms.step(connection, analyser, analyse)
        if why:
            raise StoreError(self.place, why)

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""
        with self._owned(owner) as (connection, key):
            return versions.last_version(connection, key)

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""
        with self._owned(owner) as (connection, key):
            if self._analyser is not None:
                self._verify(rebuild_terms.analyser_of(connection))
            return versions.changed(connection, key, after, limit)

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""
        with self._owned(owner) as (connection, key):
            return live(connection, key)

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
        with self._owned(owner) as (connection, key):
            return versions.ids(connection, key, scopes)

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners that have memories, of a tenant or of all."""
        with self._connector.reading() as connection:
            return live_owners(connection, tenant)

    def unembedded(self, owner: Owner, model: str, project: Project, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of the memories that `pending` counts, newest first."""
        with self._owned(owner) as (connection, key):
            return embeddings.missing(connection, key, self._models.number(connection, model), stored(project), limit)

    def pending(self, owner: Owner, model: str, project: Project) -> int:
        """Return how many live memories of an owner in a project have no embedding by `model`."""
        with self._owned(owner) as (connection, key):
            return embeddings.pending(connection, key, self._models.number(connection, model), stored(project))

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Replace the embeddings by `model`; skip memories whose text has changed since."""
        if not vectors:
            return
        with self._connector.reading() as connection:
            key, number = self._owners.key(connection, owner), self._models.give(connection, model)
        if key is not None:
            with self._connector.writing() as connection:
                embeddings.put(connection, key, (number, model), vectors, {} if texts is None else texts)

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions."""
        with self._owned(owner) as (connection, key):
            number = self._models.number(connection, model)
            return embeddings.newer(connection, key, (number, model), after, limit)

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant, by id."""
        with self._connector.reading() as connection:
            which = (self._models.number(connection, model), model)
            return embeddings.of_memories(connection, self._owners.tenant(connection, tenant), which, usable(ids))

    def recalled(
        self, ids: Sequence[int], filters: Filters, model: str | None
    ) -> tuple[list[Memory], list[tuple[int, int]]]:
        """Return what `get` and `versions` return for the owners of the filters, in one exchange with the server."""
        with self._connector.repeating() as connection:
            which = seen(connection, self._owners, filters)
            number = 0 if model is None else self._models.number(connection, model)
            found, last = reads.recalled(connection, which, ids, number)
        return (
            [found[id_] for id_ in dict.fromkeys(ids) if id_ in found],
            [last.get(owner, (0, 0)) for owner in filters.view.owners],
        )

    def candidates(self, owner: Owner, filters: Filters, wanted: Wanted) -> CandidateRows:
        """Return the visible memories of an owner that are best by words, nearest by vectors, or beside such ones."""
        with self._owned(owner) as (connection, key):
            number = 0 if wanted.model is None else self._models.number(connection, wanted.model)
        search = CandidateSearch(key, filters, (number, wanted.model or ""), wanted)
        # Words and vectors are searched at once, on two connections; none waits for the other while it holds one.
        with ThreadPoolExecutor(1, "beaver-memory-nearest") as beside:
            near = beside.submit(self._nearest, search) if search.is_open else None
            with self._connector.moment() as connection:
                counted = search.counted(connection)
        with self._connector.moment() as connection:
            return search.found(connection, counted, None if near is None else near.result())

    def _nearest(self, search: CandidateSearch) -> list[int]:
        with self._connector.reading() as connection:
            return search.nearest(connection)

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return their number."""
        with self._connector.writing(pipelined=False) as connection:
            return embeddings.drop(connection, self._models.number(connection, model))

    # --- The whole store ----------------------------------------------------------------------------------------

    def stats(self, tenant: str | None) -> Mapping[str, Any]:
        """Return figures of a tenant or of all: memories by store and type, embeddings by model, bytes."""
        with self._connector.moment() as connection:
            return integrity.stats(connection) if tenant is None else tenants.stats(connection, tenant)

    def check(self, tenant: str | None) -> list[str]:
        """Return the problems of a tenant or of all, one sentence each; an empty list if it is whole."""
        with self._connector.moment() as connection:
            return integrity.problems(connection) if tenant is None else tenants.problems(connection, tenant)

    def damaged(self, owner: Owner) -> list[DamagedEntry]:
        """Return the rows of an owner that fail their checksums, as far as they can be read."""
        with self._connector.moment() as connection:
            key = self._owners.key(connection, owner)
            return [] if key is None else [*integrity.damaged_rows(connection, key, owner)]

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Return the ids of memories of the visible owners that fail their checksums; see `MemoryStore`."""
        with self._seen(filters) as (connection, which):
            found = reads.damaged_places(connection, which, ids)
        return [id_ for id_ in dict.fromkeys(ids) if id_ in found]

    # --- Copies of another store --------------------------------------------------------------------------------

    def restore(self, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
        """Store memories under their ids and versions, in place of earlier copies, in one transaction."""
        if not copies:
            return
        with self._connector.reading() as connection:
            key = self._owners.give(connection, owner)
        with self._writing(pipelined=False) as connection:
            upsert.restore(connection, key, owner, copies)

    def restore_vectors(self, owner: Owner, model: str, rows: Sequence[VectorRow]) -> None:
        """Store embeddings under their versions, in one transaction."""
        with self._connector.reading() as connection:
            key, number = self._owners.key(connection, owner), self._models.give(connection, model)
        if rows and key is not None:
            with self._connector.writing(pipelined=False) as connection:
                upsert.restore_vectors(connection, key, (number, model), rows)

    def _prepared(self, items: Sequence[Analysed]) -> tuple[dict[Owner, OwnerKey], dict[int, Iterator[int]]]:
        """Return the numbers of the owners of new memories, and unused ids for them by tenant."""
        with self._connector.reading() as connection:
            keys = {owner: self._owners.give(connection, owner) for owner in _owners(items)}
            tenants = [keys[item.memory.owner].tenant for item in items]
            return keys, {
                tenant: iter(self._ids.take(connection, tenant, tenants.count(tenant))) for tenant in {*tenants}
            }

    @contextlib.contextmanager
    def _writing(self, *, pipelined: bool = True) -> Iterator[Any]:
        """Lend a connection to write terms with; the block is undone if they are of another analyser."""
        with self._connector.writing(pipelined=pipelined) as connection:
            answer = rebuild_terms.analyser_of(connection)
            yield connection
            if self._analyser is not None:
                self._verify(answer)

    def _verify(self, answer: Any) -> None:
        if self._analyser is not None and (why := rebuild_terms.trouble(answer, self._analyser)):
            raise StoreError(self.place, why)

    @contextlib.contextmanager
    def _seen(self, filters: Filters, *, moment: bool = False) -> Iterator[tuple[Any, Seen]]:
        with self._connector.moment() if moment else self._connector.reading() as connection:
            yield connection, seen(connection, self._owners, filters)

    @contextlib.contextmanager
    def _owned(self, owner: Owner) -> Iterator[tuple[Any, OwnerKey]]:
        with self._connector.reading() as connection:
            # No owner has the number 0, so the query finds no rows.
            yield connection, self._owners.key(connection, owner) or OwnerKey(0, 0)


def _owners(items: Sequence[Analysed]) -> list[Owner]:
    """Return the owners of memories, in order, each once."""
    return [*dict.fromkeys(item.memory.owner for item in items)]
