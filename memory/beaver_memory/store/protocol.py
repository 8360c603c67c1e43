"""Protocols of a store of memories. SQLite is one store; `testing/stores.py` holds the rules for all stores.

A store keeps records and does no ranking. All methods may be called from several threads. A write returns only when it
is durable.

A store holds any number of tenants. Ids are unique within a tenant and are never used again; what one tenant writes
changes no id of another. All owners of one call are of one tenant, except in `add`, `remember` and the methods of the
whole store: `settle`, `owners`, `drop_vectors`, `stats` and `check`.

Every change of a memory gives it a new `version`, greater than all before it of its owner: an index asks for the
changes of an owner since the last version that it has seen, so it can always catch up, and several processes may write
at once. Versions become visible in their order: a reader that has seen one never misses a smaller one. Embeddings take
their versions from the same counter of the owner.

`MemoryStore` serves callers that read and write memories. `SingleStore` is one database: an index is built from it, and
`joint.JointStore` from two.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

import attrs
from attrs import field

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
from beaver_memory.store.turn_queue import TurnQueue
from beaver_memory.views import Project


@attrs.frozen(kw_only=True)
class Analysed:
    """A memory with its terms, which are made once when it is written.

    Attributes:
        memory: the new memory.
        terms: its terms, packed: see `search/terms.py`.
        length: how many terms it has, counted as often as they occur.
    """

    memory: NewMemory
    terms: bytes = field(repr=False)
    length: int


@attrs.frozen(kw_only=True)
class IndexRow:
    """The fields of one memory that an index uses.

    Attributes:
        id: the memory.
        version: of this state of it.
        gone: the memory was forgotten; the other fields have no meaning then.
        terms: its terms, packed.
        length: how many terms it has.
        labels: values that filters compare: `store:private`, `type:fact`, `tag:x`, `person:ann` (folded),
            `file:src/a.py` and `dir:src` for each folder above it, `scope:global`, `project:p`, `session:s`, `agent:a`,
            `source:user`.
        session: the session in which it was said.
        speaker: its speaker.
        created, expires, valid_from, valid_until: seconds since the epoch; infinity for never, minus
            infinity for always.
        updated: likewise; for a forgotten memory, when it was forgotten.
        mentions, importance, confidence: for ranking.
        pinned: likewise.
        uid: its name in every copy of it, 16 bytes; a forgotten memory has it, too.
        doubted_by: a newer memory that may hold in its place.
    """

    id: int
    version: int
    gone: bool = False
    terms: bytes = field(default=b"", repr=False)
    length: int = 0
    labels: tuple[str, ...] = ()
    session: str = ""
    speaker: str = ""
    created: float = 0.0
    updated: float = 0.0
    expires: float = float("inf")
    valid_from: float = float("-inf")
    valid_until: float = float("inf")
    mentions: int = 1
    importance: float = 0.5
    confidence: float = 1.0
    pinned: bool = False
    uid: bytes = field(default=b"", repr=False)
    doubted_by: int | None = None


@attrs.frozen(kw_only=True)
class VectorRow:
    """The embedding of one memory: `data` is its float16 values, little-endian, or what the model keeps in their place.

    `version` is as for memories.
    """

    id: int
    version: int
    data: bytes = field(repr=False)


class MemoryStore(Protocol):
    """Keeps memories."""

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories in one transaction; return their ids, in order.

        A memory without a uid, or with that of another memory of its tenant, gets a new one.
        """

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that the store does not hold yet, in one transaction; return the outcome of each, in order.

        A stored memory is the same if it has the same words, owner, store, agent, scope, project or session of that
        scope, and time of validity; or the same owner and uid. The same memory is mentioned once more if `mention`,
        and expires at the later of both ends. The uid of a forgotten memory, or of another owner's, is replaced by a
        new one, as in `add`.
        """

    def supersede(self, item: Analysed, ids: Sequence[int], filters: Filters, *, at: datetime, now: datetime) -> Kept:
        """Store a memory as `remember` does, and end the time in which others were true, in one transaction.

        Those of `ids` end at `at` that are visible, of the same owner, and another memory. Each names the new one in
        `superseded_by`, with an entry `DELETE` in its history.
        """

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the visible memories among `ids`, in the order of `ids`."""

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest visible memories, newest first."""

    def matching(self, patterns: Sequence[Pattern], filters: Filters, *, limit: int) -> list[int]:
        """Return ids of visible memories that hold all of some phrases and prefixes, at most `limit`, newest first.

        A memory may be among them that holds other forms of the words only; the caller compares the texts. A text is
        title, narrative, facts, tags, keywords and people.
        """

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; an empty list if the anchor is not visible."""

    def touch(self, ids: Iterable[int], *, tenant: str, now: datetime) -> None:
        """Record that memories of a tenant were recalled; gives no new version."""

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one visible memory and add an entry to its history; return `None` if it does not exist.

        Fields are those of `Memory`; `title`, `narrative`, `facts` and `keywords` require `terms` and `length`.
        """

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase text, terms, embeddings and the texts in the history of visible memories; return their ids.

        A memory that names a forgotten one in `superseded_by` or `doubted_by` names none from then on; it stays ended.
        """

    def drop_evidence(self, owner: Owner, turns: Collection[str], *, now: datetime) -> int:
        """Erase the excerpts of turns from all memories of an owner that rest on them; return how many had one.

        No history keeps them, and a memory that fails its checksum loses its excerpt too.
        """

    def footprint(self, ids: Collection[int], *, tenant: str) -> Mapping[str, int]:
        """Return how many rows hold content of memories of a tenant, by place; of forgotten memories none do."""

    def vectors_of(self, ids: Collection[int], model: str, *, tenant: str) -> dict[int, bytes]:
        """Return the embeddings by `model` of memories of a tenant, by id, without those that fail their checksums."""

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return the history of a visible memory, oldest first, without changes in other stores."""

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store the summary of an agent's session in place of an earlier one."""

    def drop_summaries(self, owner: Owner, sessions: Collection[str] | None = None) -> int:
        """Erase the summaries of sessions of an owner, of all its sessions if `None`; return their number."""

    def drop_owner(self, owner: Owner) -> None:
        """Delete every row of an owner without memories, also those that tell that one was forgotten.

        No other process may write memories of the owner at the same time; an owner with memories stays.
        """

    def holdings(self, owner: Owner) -> Mapping[str, int]:
        """Return how many rows tell of an owner, by place: with content, or about capture. Forgotten memories do not.

        All memories count, whatever their project, session, agent and validity.
        """

    def drop_capture_records(self, owner: Owner) -> None:
        """Delete what capture knows of an owner: captured turns, what they took on each day, forgotten texts."""

    def mark_forgotten(self, owner: Owner, texts: Collection[str]) -> None:
        """Record that an owner has forgotten texts, by keyed hashes of their words."""

    def forgotten(self, owner: Owner, texts: Collection[str]) -> set[str]:
        """Return those texts whose words an owner has forgotten."""

    def spent(self, owner: Owner, day: date) -> CaptureSpend:
        """Return what the capture of an owner's memories has taken on a day."""

    def spend(self, owner: Owner, day: date, amount: CaptureSpend, most: CaptureSpend) -> bool:
        """Add to what capture takes on a day, unless a number that grows would be greater than that of `most`.

        Return whether it was added. All processes share the numbers, so they share the limits too.
        """

    def captured(self, owner: Owner, turns: Collection[str]) -> set[str]:
        """Return those turns from which the owner's memories were captured, whatever was found in them."""

    def mark_captured(self, owner: Owner, turns: Collection[str]) -> None:
        """Record that an owner's memories were captured from turns."""

    @property
    def queue(self) -> TurnQueue:
        """The turns that wait to be captured."""

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """Bring all terms to one analyser: those of an older one are made anew, those of a newer one are refused.

        A store that has no analyser yet accepts the terms of this one.
        """

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""

    def owners(self, tenant: str | None) -> list[Owner]:
        """Return the owners that have memories, of a tenant or of all."""

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return their number."""

    def stats(self, tenant: str | None) -> Mapping[str, Any]:
        """Return figures of a tenant or of all: memories by store and type, embeddings by model, bytes.

        Those of a file are always those of the whole file.
        """

    def check(self, tenant: str | None) -> list[str]:
        """Return the problems of a tenant or of all, one sentence each; a file is always checked whole."""

    def damaged(self, owner: Owner) -> list[DamagedEntry]:
        """Return the rows of an owner that fail their checksums, as far as they can be read."""

    def damaged_among(self, ids: Sequence[int], filters: Filters) -> list[int]:
        """Return the ids of memories of the visible owners that fail their checksums, in the order of `ids`.

        A damaged row does not tell its store, so filters that do not see all stores get none.
        """

    def close(self) -> None:
        """Close the store. Closing again does nothing."""


class SingleStore(MemoryStore, Protocol):
    """One database of memories."""

    @property
    def identity(self) -> str:
        """The random name of this store, made once; a cache with another name belongs to another store."""

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return for each memory whether `remember` would find it in the store."""

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return `last_version` and the version of the newest embedding by a model of each owner, all of one tenant.

        This is the cheap question before a search.

        All numbers are from the same moment. Without a model, or an embedding by it, the second number is 0.
        """

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""

    def pending(self, owner: Owner, model: str, project: Project) -> int:
        """Return how many live memories of an owner lack an embedding by `model`: of a project, and global ones."""

    def unembedded(self, owner: Owner, model: str, project: Project, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of the memories that `pending` counts, newest first."""

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Replace the embeddings by `model`; skip forgotten memories.

        With `texts` from `unembedded`, skip also the memories whose text has changed since.
        """

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions.

        An embedding gets a new version, too, when its memory keeps its text and gets other terms: an index tells by the
        terms which text it has the vector of.
        """
