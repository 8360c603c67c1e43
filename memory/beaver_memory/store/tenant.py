"""Shows one tenant of a shared store as a whole store, opened when it is first used.

A caller names owners as in a store of its own: its tenant `""` is the tenant of this store, and its tenant `x` is the
part `x` of it, `TENANT/x`. Memories of a project get the name of the project of this store; a reader sees those, the
global ones and those without a project.

A failure of the shared store costs the caller one error, and is reported once; the next call tries again. After a
failure that took long, calls fail at once for a while, so that no turn waits for a server that does not answer.
"""

import contextlib
import copy
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeVar, cast

import attrs

from beaver_hostspecs import Clock, SystemClock
from beaver_memory.errors import StoreError
from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern
from beaver_memory.records import (
    CaptureSpend,
    Change,
    DamagedEntry,
    Kept,
    Memory,
    NewMemory,
    Owner,
    Person,
    Scope,
    SessionSummary,
)
from beaver_memory.store.candidate_store import CandidateRows, CandidateStore, Wanted
from beaver_memory.store.protocol import Analysed, IndexRow, VectorRow
from beaver_memory.store.shared import PART, MemoryCopy, SharedStore
from beaver_memory.store.tenant_queue import TenantTurnQueue

T = TypeVar("T")
M = TypeVar("M", bound=NewMemory)

SLOW_SECONDS = 0.5
"""A failure that took longer is not tried again at once."""

REST_SECONDS = 10.0
"""How long calls fail at once after a slow failure."""

Told = Callable[[StoreError | None], object]


class TenantStore:
    """One tenant of a shared store; see `SingleStore` for what each method does. Thread-safe.

    Args:
        opened: opens the shared store.
        tenant: the name of the tenant.
        project: the name of the project whose memories are kept and shown; empty for none.
        told: called with the reason why the store cannot be used, and with `None` when it can be used again.
        clock: the source of time.
    """

    def __init__(
        self,
        opened: Callable[[], SharedStore],
        tenant: str,
        project: str = "",
        *,
        told: Told = bool,
        clock: Clock | None = None,
    ) -> None:
        self._opened = opened
        self._tenant, self._project = tenant, project
        self._told = told
        self._clock = SystemClock() if clock is None else clock
        self._lock = threading.Lock()
        self._store: SharedStore | None = None
        self._prepare: Callable[[SharedStore], object] = bool
        self._resting: tuple[float, StoreError | None] = 0.0, None
        self._trouble: str | None = None
        self._closed = False

    @property
    def identity(self) -> str:
        """The name of the shared store, with that of the tenant."""
        return f"{self._ask(lambda store: store.identity)}:{self._tenant}"

    def close(self) -> None:
        """Close the shared store. Closing again does nothing."""
        with self._lock:
            self._closed = True
            if self._store is not None:
                self._store.close()

    def view(self, filters: Filters) -> Filters:
        """Return the filters by which an index of this store is searched; its owners are named as callers name them."""
        return filters if filters.project or not self._project else attrs.evolve(filters, project=self._project)

    # --- Memories -----------------------------------------------------------------------------------------------

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories in one transaction; return their ids, in order."""
        return self._ask(lambda store: store.add(self._inner_items(items), now=now))

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that the store does not hold yet, in one transaction; return the outcome of each, in order."""
        return self._ask(lambda store: store.remember(self._inner_items(items), now=now, mention=mention))

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory and end the time of others, in one transaction."""
        (inner,), view = self._inner_items([item]), self._inner_filters(filters)
        return self._ask(lambda store: store.supersede(inner, ids, view, at=at, now=now))

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return for each memory whether `remember` would find it in the store."""
        return self._ask(lambda store: store.knows(self._inner_items(items), now=now))

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`."""
        return self._outer(self._ask(lambda store: store.get(ids, self._inner_filters(filters))))

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""
        return self._outer(self._ask(lambda store: store.recent(self._inner_filters(filters), limit=limit)))

    def matching(self, patterns: Sequence[Pattern], filters: Filters, *, limit: int) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, newest first."""
        return self._ask(lambda store: store.matching(patterns, self._inner_filters(filters), limit=limit))

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""
        inner = self._inner_filters(filters)
        return self._outer(self._ask(lambda store: store.timeline(anchor, inner, before=before, after=after)))

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""
        inner = self._inner_filters(filters)
        earlier, later = self._ask(lambda store: store.neighbours(at, id_, inner, before=before, after=after))
        return self._outer(earlier), self._outer(later)

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""
        which = list(ids)
        self._ask(lambda store: store.touch(which, tenant=self._inner_name(tenant), now=now))

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist."""
        inner = self._inner_filters(filters)
        changed = self._ask(lambda store: store.change(id_, inner, event=event, now=now, **fields))
        return None if changed is None else self._outer([changed])[0]

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase text, terms, embeddings and the texts in the history of visible memories; return their ids."""
        return self._ask(lambda store: store.forget(ids, self._inner_filters(filters), now=now))

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:
        """Erase the excerpts of turns from all memories of an owner that rest on them; return how many had one."""
        return self._ask(lambda store: store.drop_evidence(self._inner_owner(owner), turns, now=now))

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows hold content of memories of a tenant, by place."""
        return self._ask(lambda store: store.footprint(ids, tenant=self._inner_name(tenant)))

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant, by id."""
        return self._ask(lambda store: store.vectors_of(ids, model, tenant=self._inner_name(tenant)))

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the history of a visible memory, oldest first, without changes in other stores."""
        return self._ask(lambda store: store.history(id_, self._inner_filters(filters)))

    # --- People and sessions ------------------------------------------------------------------------------------

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""
        return self._ask(lambda store: store.people(self._inner_filters(filters), query=query, limit=limit))

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""
        return self._ask(lambda store: store.summaries(self._inner_owner(owner), limit=limit))

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store the summary of an agent's session in place of an earlier one."""
        self._ask(lambda store: store.summarise(self._inner_owner(owner), summary))

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""
        return self._ask(lambda store: store.drop_summaries(self._inner_owner(owner), sessions))

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten."""
        self._ask(lambda store: store.drop_owner(self._inner_owner(owner)))

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows tell of an owner, by place: with content, or about capture."""
        return self._ask(lambda store: store.holdings(self._inner_owner(owner)))

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""
        self._ask(lambda store: store.drop_capture_records(self._inner_owner(owner)))

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record that an owner has forgotten texts, by keyed hashes of their words."""
        self._ask(lambda store: store.mark_forgotten(self._inner_owner(owner), texts))

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten."""
        return self._ask(lambda store: store.forgotten(self._inner_owner(owner), texts))

    # --- Capture ------------------------------------------------------------------------------------------------

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""
        return self._ask(lambda store: store.spent(self._inner_owner(owner), day))

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`."""
        return self._ask(lambda store: store.spend(self._inner_owner(owner), day, amount, most))

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured, whatever was found in them."""
        return self._ask(lambda store: store.captured(self._inner_owner(owner), turns))

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record that an owner's memories were captured from turns."""
        self._ask(lambda store: store.mark_captured(self._inner_owner(owner), turns))

    @property
    def queue(self) -> TenantTurnQueue:
        """The turns of the tenant that wait to be captured."""
        return TenantTurnQueue(self._ask, self._tenant, inner=self._inner_owner, outer=self._outer_owner)

    # --- Questions of an index ----------------------------------------------------------------------------------

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return `last_version` and, with a model, `last_vector` of each owner, all from the same moment."""
        return self._ask(lambda store: store.versions([self._inner_owner(each) for each in owners], model))

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser as soon as the shared store is open; keep a failure for the first call.

        Raises:
            StoreError: the terms are of a newer analyser.
        """
        self._prepare = lambda store: store.settle(analyser, analyse)
        try:
            self._ask(self._prepare)
        except StoreError as error:
            if error.category == "newer":
                raise

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""
        return self._ask(lambda store: store.last_version(self._inner_owner(owner)))

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""
        return self._ask(lambda store: store.changed(self._inner_owner(owner), after, limit=limit))

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""
        return self._ask(lambda store: store.count(self._inner_owner(owner)))

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
        return self._ask(lambda store: store.ids(self._inner_owner(owner), scopes))

    def unembedded(self, owner: Owner, model: str, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of live memories that have no embedding by `model`, newest first."""
        return self._ask(lambda store: store.unembedded(self._inner_owner(owner), model, limit=limit))

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Replace the embeddings by `model`; skip memories whose text has changed since."""
        self._ask(lambda store: store.put_vectors(self._inner_owner(owner), model, vectors, texts=texts))

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions."""
        return self._ask(lambda store: store.vectors(self._inner_owner(owner), model, after, limit=limit))

    def last_vector(self, owner: Owner, model: str) -> int:
        """Return the version of the newest embedding by `model`, 0 if there is none."""
        return self._ask(lambda store: store.last_vector(self._inner_owner(owner), model))

    # --- The tenant as a whole ----------------------------------------------------------------------------------

    def owners(self) -> list[Owner]:
        """Return the owners of the tenant that have memories."""
        return [self._outer_owner(owner) for owner in self._ask(lambda store: store.owners_of(self._tenant))]

    def pending(self, owner: Owner | None, model: str) -> int:
        """Return how many live memories have no embedding by `model`, of one owner or of the tenant."""
        if owner is None:
            return self._ask(lambda store: store.pending_of(self._tenant, model))
        return self._ask(lambda store: store.pending(self._inner_owner(owner), model))

    def drop_vectors(self, model: str) -> int:
        """Delete the embeddings of the tenant by a model; return their number."""
        return self._ask(lambda store: store.drop_vectors_of(self._tenant, model))

    def stats(self) -> Mapping[str, Any]:
        """Return the figures of the tenant."""
        return self._ask(lambda store: store.stats_of(self._tenant))

    def check(self) -> list[str]:
        """Return the problems of the tenant, one sentence each."""
        return self._ask(lambda store: store.check_of(self._tenant))

    def damaged(self, owner: Owner) -> list[DamagedEntry]:
        """Return the rows of an owner that fail their checksums, as far as they can be read."""
        found = self._ask(lambda store: store.damaged(self._inner_owner(owner)))
        return [attrs.evolve(each, owner=owner) for each in found]

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Return the ids of memories of the visible owners that fail their checksums; see `MemoryStore`."""
        return self._ask(lambda store: store.damaged_among(ids, self._inner_filters(filters)))

    # --- Copies of another store --------------------------------------------------------------------------------

    def restore(self, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
        """Store memories under their ids and versions, in place of earlier copies, in one transaction."""
        inner = [attrs.evolve(each, memory=each.memory and self._inner_memory(each.memory)) for each in copies]
        self._ask(lambda store: store.restore(self._inner_owner(owner), inner))

    def restore_vectors(self, owner: Owner, model: str, rows: Sequence[VectorRow]) -> None:
        """Store embeddings under their versions, in one transaction."""
        self._ask(lambda store: store.restore_vectors(self._inner_owner(owner), model, rows))

    # --- The shared store ---------------------------------------------------------------------------------------

    def _ask(self, work: Callable[[SharedStore], T]) -> T:
        """Return the result of `work` on the shared store.

        Raises:
            StoreError: the shared store cannot be used.
        """
        try:
            store = self._there()
            with self._timed():
                found = work(store)
        except StoreError as error:
            self._tell(error)
            raise
        self._tell(None)
        return found

    def _there(self) -> SharedStore:
        # Under the lock: of many threads, one waits for a server that does not answer.
        with self._lock:
            until, failure = self._resting
            if failure is not None and self._clock.monotonic() < until:
                raise StoreError(failure.place, failure.category) from failure
            if self._store is None:
                with self._timed():
                    self._store = self._open()
            return self._store

    def _open(self) -> SharedStore:
        if self._closed:
            raise StoreError(f"of the tenant {self._tenant}", "closed")
        store = self._opened()
        try:
            self._prepare(store)
        except BaseException:
            store.close()
            raise
        return store

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Let later calls fail at once if this block fails slowly."""
        begun = self._clock.monotonic()
        try:
            yield
        except StoreError as error:
            now = self._clock.monotonic()
            if now - begun > SLOW_SECONDS:
                self._resting = now + REST_SECONDS, error
            raise

    def _tell(self, error: StoreError | None) -> None:
        """Report a change: the first failure of a kind, and the first success after it."""
        category = None if error is None else error.category
        with self._lock:
            before, self._trouble = self._trouble, category
        if before != category:
            self._told(error)

    # --- Names --------------------------------------------------------------------------------------------------

    def _inner_name(self, tenant: str) -> str:
        return self._tenant + PART + tenant if tenant else self._tenant

    def _inner_owner(self, owner: Owner) -> Owner:
        return Owner(tenant=self._inner_name(owner.tenant), user=owner.user)

    def _outer_owner(self, owner: Owner) -> Owner:
        return Owner(tenant=owner.tenant[len(self._tenant + PART) :], user=owner.user)

    def _inner_filters(self, filters: Filters) -> Filters:
        owners = tuple(self._inner_owner(owner) for owner in filters.owners)
        return attrs.evolve(filters, owners=owners, project=filters.project or self._project)

    def _inner_items(self, items: Sequence[Analysed]) -> list[Analysed]:
        return [attrs.evolve(item, memory=self._inner_memory(item.memory)) for item in items]

    def _inner_memory(self, memory: M) -> M:
        project = memory.project or ("" if memory.scope == "global" else self._project)
        return _with(memory, owner=self._inner_owner(memory.owner), project=project)

    def _outer(self, memories: Iterable[Memory]) -> list[Memory]:
        return [_with(memory, owner=self._outer_owner(memory.owner)) for memory in memories]


class CandidateTenantStore(TenantStore):
    """One tenant of a shared store whose database finds candidates; see `CandidateStore`."""

    def recalled(
        self, ids: Sequence[int], filters: Filters, model: str | None
    ) -> tuple[list[Memory], list[tuple[int, int]]]:
        """Return what `get` and `versions` return for the owners of the filters, in one exchange with the server."""
        inner = self._inner_filters(filters)
        memories, versions = self._ask(lambda store: cast("CandidateStore", store).recalled(ids, inner, model))
        return self._outer(memories), versions

    def matching(
        self, patterns: Sequence[Pattern], filters: Filters, *, limit: int, terms: Collection[int] = ()
    ) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, newest first."""
        inner = self._inner_filters(filters)
        return self._ask(
            lambda store: cast("CandidateStore", store).matching(patterns, inner, limit=limit, terms=terms)
        )

    def candidates(self, owner: Owner, filters: Filters, wanted: Wanted) -> CandidateRows:
        """Return the visible memories of an owner that are best by words, nearest by vectors, or beside such ones."""
        inner, view = self._inner_owner(owner), self._inner_filters(filters)
        return self._ask(lambda store: cast("CandidateStore", store).candidates(inner, view, wanted))


def _with(memory: M, **fields: Any) -> M:
    """Return a memory with other values of fields, which need no check: that costs a tenth of a whole check."""
    found = copy.copy(memory)
    for name, value in fields.items():
        object.__setattr__(found, name, value)
    return found
