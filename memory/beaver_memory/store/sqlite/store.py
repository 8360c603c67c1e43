"""The store in one SQLite file, for any number of threads and processes of one machine."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import apsw

from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters, every_memory
from beaver_memory.patterns import Pattern
from beaver_memory.records import CaptureSpend, Change, DamagedEntry, Kept, Memory, Owner, Person, Scope, SessionSummary
from beaver_memory.store.bounds import usable
from beaver_memory.store.fingerprint import digests
from beaver_memory.store.protocol import Analysed, IndexRow, VectorRow
from beaver_memory.store.sqlite import (
    embeddings,
    inserts,
    integrity,
    people,
    reads,
    rebuild_terms,
    sqlite_vec,
    turn_queue,
    update,
    upsert,
    versions,
    word_index,
)
from beaver_memory.store.sqlite.connections import PATIENCE, Connector, LossTold
from beaver_memory.store.sqlite.damaged_rows import damaged_rows
from beaver_memory.store.sqlite.owners import (
    NO_OWNER,
    Damage,
    DamageTold,
    OwnerKey,
    TenantOwners,
    live,
    live_owners,
    owners,
    tenant_number,
)
from beaver_memory.store.sqlite.sqlite_vec import VecTables
from beaver_memory.store.sqlite.turn_queue import SqliteTurnQueue, made_key, read_key
from beaver_memory.store.sqlite.versions import VersionCache
from beaver_memory.texts import micros
from beaver_memory.views import Project, stored
from beaver_toolkit.sqlite.errors import UNWRITABLE
from beaver_toolkit.sqlite.files import drop_backups
from beaver_toolkit.sqlite.losses import drop_damaged_logs, losses_of, remedy


class SqliteStore:
    """Keeps memories in one SQLite file; see `MemoryStore` for what each method does.

    Every method raises `StoreError` where the file cannot be used, and says what to do; the next call tries again. A
    store belongs to the process that opened it.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._analyser: int | None = None
        self._standing = VersionCache()

    @classmethod
    def open(
        cls, path: Path, *, patience: float = PATIENCE, damaged: DamageTold = bool, lost: LossTold = bool
    ) -> "SqliteStore":
        """Open the store in a file, and make the file if it is missing; its folder must exist.

        Args:
            path: the file.
            patience: how many seconds opening and reading wait for other processes that lock it.
            damaged: receives the number of damaged rows that were found, each time that one more is.
            lost: receives the number of acknowledged commits that are missing, whenever more are.

        Raises:
            StoreError: the file cannot be used; the error says why and what to do. No existing file is replaced.
        """
        connector = Connector(path, patience=patience, damage=Damage(damaged), lost=lost)
        connector.open()
        return cls(connector)

    @property
    def _damage(self) -> Damage:
        return self._connector.owners.damage

    @property
    def path(self) -> Path:
        """The file."""
        return self._connector.path

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
        with self._connector.writing() as connection:
            self._verify_analyser(connection)
            return inserts.add(connection, self._connector.owners, items, now)

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that the store does not hold yet, in one transaction; return the outcome of each, in order."""
        if not items:
            return []
        with self._connector.writing() as connection:
            self._verify_analyser(connection)
            book = self._connector.owners
            return [upsert.remember(connection, book, item, now, mention=mention) for item in items]

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory and end the time of others, in one transaction; see `MemoryStore.supersede`."""
        with self._connector.writing() as connection:
            self._verify_analyser(connection)
            return upsert.supersede(connection, self._connector.owners, item, ids, filters, at=at, now=now)

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return for each memory whether `remember` would find it in the store."""
        with self._connector.reading() as connection:
            return [upsert.is_there(connection, self._connector.owners, item, now) for item in items]

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`, each once."""
        with self._seen(filters) as (connection, owners):
            found = reads.visible(connection, owners, ids, filters)
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""
        with self._seen(filters) as (connection, owners):
            return reads.recent(connection, owners, filters, limit)

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""
        with self._seen(filters) as (connection, owners):
            return reads.timeline(connection, owners, anchor, filters, before=before, after=after)

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""
        with self._seen(filters) as (connection, owners):
            return reads.neighbours(connection, owners, (micros(at), id_), filters, before=before, after=after)

    def matching(self, patterns: Sequence[Pattern], filters: Filters, *, limit: int) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, newest first.

        SQLite's own word index answers, which first adds the memories since its last answer.
        """
        self._index_words()
        with self._seen(filters) as (connection, owners):
            return word_index.matching(connection, owners, patterns, filters, limit)

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""
        if which := usable(ids):
            with self._connector.writing() as connection:
                update.touch(connection, tenant_number(connection, tenant), which, now)

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist.

        If no value differs, the store writes nothing.

        Raises:
            TypeError: a field cannot be changed.
            ValueError: a value does not fit, or the text of the memory changes and `terms` or `length` is missing.
        """
        with self._connector.writing() as connection:
            self._verify_analyser(connection)
            owners = self._visible_owners(connection, filters)
            return update.change(connection, owners, id_, filters, event=event, now=now, fields=fields)

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase text, terms, embeddings and the texts in the history of visible memories; return their ids."""
        with self._connector.writing() as connection:
            owners = self._visible_owners(connection, filters)
            gone = update.forget(connection, owners, ids, filters, now)
            if gone:
                # Before the commit: a memory that cannot be erased everywhere is not forgotten.
                drop_backups(self._connector.path)
                drop_damaged_logs(self._connector.path)
        if gone:
            self._connector.empty_log()
        return gone

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:
        """Erase the excerpts of turns from all memories of an owner that rest on them; return how many had one."""
        every = every_memory([owner], now)
        # A transaction that meets an unreadable row can write nothing any more.
        with self._seen(every) as (connection, owners):
            ids = update.resting_on(connection, owners, turns)
        if ids:
            with self._connector.writing() as connection:
                update.drop_evidence(connection, self._visible_owners(connection, every), ids, every)
            self._connector.empty_log()
        return len(ids)

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows hold content of memories of a tenant, by place."""
        with self._connector.reading() as connection:
            return update.footprint(connection, tenant_number(connection, tenant), ids)

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the visible history of a visible memory, oldest first; changes in hidden stores are left out."""
        with self._seen(filters) as (connection, owners):
            found = reads.visible(connection, owners, [id_], filters)
            return reads.history(connection, owners, found[id_], filters.view.stores) if found else []

    # --- People and sessions ------------------------------------------------------------------------------------

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""
        with self._seen(filters) as (connection, owners):
            return people.people(connection, owners, filters, query, limit)

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""
        with self._connector.reading() as connection:
            owners = self._connector.owners.those_of(connection, [owner])
            return people.summaries(connection, owners, limit) if owners else []

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store a session's summary in place of an earlier one."""
        with self._connector.writing() as connection:
            people.summarise(connection, self._connector.owners.give(connection, owner), owner, summary)

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""
        with self._connector.writing() as connection:
            key = self._connector.owners.find(connection, owner)
            dropped = 0 if key is None else people.drop_summaries(connection, key, sessions)
        if dropped:
            self._connector.empty_log()
        return dropped

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten."""
        with self._connector.writing() as connection:
            self._connector.owners.drop(connection, owner)
        self._connector.empty_log()

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows tell of an owner, by place: with content, or about capture."""
        with self._connector.reading() as connection:
            return self._connector.owners.holdings(connection, owner)

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""
        with self._connector.writing() as connection:
            self._connector.owners.drop_capture_records(connection, owner)
        self._connector.empty_log()

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record that an owner has forgotten texts, by keyed hashes of their words."""
        found = digests(made_key(self.path), owner, texts) if texts else {}
        if found:
            with self._connector.writing() as connection:
                turn_queue.mark_forgotten(connection, self._connector.owners.give(connection, owner), found.values())

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten."""
        key = read_key(self.path) if texts else None
        if key is None:
            return set()
        with self._owned(owner) as (connection, number):
            return turn_queue.forgotten(connection, number, digests(key, owner, texts))

    # --- Capture ------------------------------------------------------------------------------------------------

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""
        with self._owned(owner) as (connection, key):
            return turn_queue.spent(connection, key, day)

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`."""
        with self._connector.writing() as connection:
            return turn_queue.spend(connection, self._connector.owners.give(connection, owner), day, amount, most)

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured, whatever was found in them."""
        with self._owned(owner) as (connection, key):
            return turn_queue.captured(connection, key, turns)

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record that an owner's memories were captured from turns."""
        if turns:
            with self._connector.writing() as connection:
                turn_queue.mark_captured(connection, self._connector.owners.give(connection, owner), turns)

    @property
    def queue(self) -> SqliteTurnQueue:
        """The turns that wait to be captured."""
        return SqliteTurnQueue(self._connector)

    # --- Questions of an index ----------------------------------------------------------------------------------

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return the versions of the newest change and the newest embedding of each owner, all from the same moment."""
        with self._connector.reading() as connection:
            return self._standing.of(connection, self._connector.owners, owners, model)

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser, and keep them there: terms of an older analyser are made anew.

        Raises:
            StoreError: the terms are of a newer analyser. Later calls raise it too if another process brings in a newer
                one.
        """
        self._analyser = analyser
        with self._connector.reading() as connection:
            why = rebuild_terms.trouble(connection, analyser)
        while why == "replaced":
            with self._connector.writing() as connection:
                why = rebuild_terms.step(connection, analyser, analyse)
        if why:
            raise StoreError(self._connector.path, why)

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""
        with self._owned(owner) as (connection, key):
            return versions.last_version(connection, key)

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""
        with self._connector.reading() as connection:
            self._verify_analyser(connection)
            owners = self._connector.owners.those_of(connection, [owner])
            return versions.changed(connection, owners, after, limit) if owners else []

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""
        with self._owned(owner) as (connection, key):
            return live(connection, key)

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
        with self._connector.reading() as connection:
            owners = self._connector.owners.those_of(connection, [owner])
            return versions.ids(connection, owners, scopes) if owners else []

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners that have memories, of a tenant or of all."""
        with self._connector.reading() as connection:
            return live_owners(connection, tenant)

    def known_owners(self) -> list[Owner]:
        """Return all owners, those too whose memories are all forgotten."""
        with self._connector.reading() as connection:
            return list(owners(connection).values())

    def unembedded(self, owner: Owner, model: str, project: Project, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of the memories that `pending` counts, newest first."""
        self._begin(model)
        with self._connector.reading() as connection:
            owners = self._connector.owners.those_of(connection, [owner])
            which = embeddings.model_number(connection, model) or 0
            return embeddings.missing(connection, owners, which, stored(project), limit) if owners else []

    def pending(self, owner: Owner, model: str, project: Project) -> int:
        """Return how many live memories of an owner in a project have no embedding by `model`."""
        with self._owned(owner) as (connection, key):
            return embeddings.pending(connection, key, embeddings.model_number(connection, model), stored(project))

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Replace the embeddings by `model`; skip memories whose text has changed since."""
        if vectors:
            with self._connector.writing() as connection:
                key = self._connector.owners.find(connection, owner)
                if key is not None:
                    embeddings.put(connection, key, model, vectors, {} if texts is None else texts)

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions."""
        with self._connector.reading() as connection:
            owners = self._connector.owners.those_of(connection, [owner])
            which = embeddings.model_number(connection, model) or 0
            return embeddings.newer(connection, owners, which, after, limit) if owners else []

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant, by id."""
        with self._connector.reading() as connection:
            damage = self._connector.owners.damage
            return embeddings.of_memories(connection, tenant_number(connection, tenant), model, ids, damage)

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return their number."""
        with self._connector.writing() as connection:
            sqlite_vec.drop(connection, model)
            return embeddings.drop(connection, model)

    def vec_tables(self) -> VecTables:
        """Return the copies of the embeddings that sqlite-vec searches."""
        return VecTables(self._connector)

    # --- The whole store ----------------------------------------------------------------------------------------

    def stats(self, tenant: str | None) -> Mapping[str, Any]:  # noqa: ARG002 - a file is counted whole
        """Return figures of the file: memories by store and type, embeddings by model, bytes on disk."""
        with self._connector.reading() as connection:
            return integrity.stats(connection, self._connector.path)

    def check(self, tenant: str | None, *, shift: int = 0) -> list[str]:  # noqa: ARG002 - a file is checked whole
        """Return the problems of the file, one sentence each, with `shift` added to ids; none if it is whole."""
        try:
            with self._connector.writing() as connection:
                found = integrity.problems(connection, self._damage, shift=shift)
        except StoreError as error:
            if error.category not in UNWRITABLE:
                raise
            with self._connector.reading() as connection:
                found = integrity.problems(connection, self._damage, writable=False, shift=shift)
        losses = [f"{loss} To do: {remedy(self.path)}." for loss in losses_of(self.path)]
        return [*losses, *found]

    def damaged(self, owner: Owner) -> list[DamagedEntry]:
        """Return the rows of an owner that fail their checksums, as far as they can be read."""
        with self._connector.reading() as connection:
            key = self._connector.owners.find(connection, owner)
            return [] if key is None else [*damaged_rows(connection, key, owner)]

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Return the ids of memories of the visible owners that fail their checksums; see `MemoryStore`."""
        with self._seen(filters) as (connection, owners):
            found = reads.damaged_places(connection, owners, ids, filters)
        return [id_ for id_ in dict.fromkeys(ids) if id_ in found]

    def _verify_analyser(self, connection: apsw.Connection) -> None:
        if self._analyser is not None and (why := rebuild_terms.trouble(connection, self._analyser)):
            raise StoreError(self._connector.path, why)

    @contextlib.contextmanager
    def _seen(self, filters: Filters) -> Iterator[tuple[apsw.Connection, TenantOwners]]:
        with self._connector.reading() as connection:
            yield connection, self._visible_owners(connection, filters)

    def _index_words(self) -> None:
        with self._connector.reading() as connection:
            done, upto = word_index.last_indexed(connection), word_index.last_added(connection)
        # Where nothing can be written, the words of the newest memories stay unknown to it.
        while done < upto and not self._connector.unwritable:
            with self._connector.writing() as connection:
                done = word_index.index_words(connection, upto)

    def _visible_owners(self, connection: apsw.Connection, filters: Filters) -> TenantOwners:
        """Return the visible owners; none if the filters allow no store."""
        return self._connector.owners.those_of(connection, filters.view.owners if filters.view.stores else ())

    @contextlib.contextmanager
    def _owned(self, owner: Owner) -> Iterator[tuple[apsw.Connection, OwnerKey]]:
        with self._connector.reading() as connection:
            yield connection, self._connector.owners.find(connection, owner) or NO_OWNER

    def _begin(self, model: str) -> None:
        with self._connector.reading() as connection:
            known = embeddings.model_number(connection, model)
        if known is None:
            with self._connector.writing() as connection:
                embeddings.begin_model(connection, model)
