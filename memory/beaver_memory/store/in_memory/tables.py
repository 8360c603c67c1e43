"""The tables of the store in memory: what each owner has, in the order of its versions."""

import itertools
import secrets
import threading
from collections.abc import Hashable, Iterable
from datetime import date, datetime
from typing import Protocol, TypeVar

import attrs
from attrs import field

from beaver_memory.records import CaptureSpend, Change, Memory, Owner, SessionSummary
from beaver_memory.store.bounds import bounded
from beaver_memory.store.people import labels_of, narrow_labels
from beaver_memory.store.protocol import IndexRow, VectorRow
from beaver_memory.store.turn_queue import QueuedTurn
from beaver_memory.texts import cleaned, micros_or_none, seconds


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


V = TypeVar("V", bound=_Versioned)


@attrs.define(eq=False, kw_only=True)
class Row:
    """A memory that is not forgotten.

    Attributes:
        memory: the memory.
        terms: its terms, packed.
        length: how many terms it has.
        added_at: when the store got it.
        labels: its labels for filters by tag, person and file.
        history: its changes, oldest first, without its addition.
    """

    memory: Memory
    terms: bytes = field(repr=False)
    length: int
    added_at: datetime
    labels: frozenset[str] = field(init=False)
    history: tuple[Change, ...] = ()

    def __attrs_post_init__(self) -> None:
        memory = self.memory
        self.labels = frozenset(narrow_labels(memory.tags, memory.related_files, memory.related_people))


@attrs.define(eq=False)
class OwnerTable:
    """The rows of one owner.

    Attributes:
        owner: the owner.
        last_version: the version of the last write.
        rows: the memories that are not forgotten, by id.
        changes: the index row of every memory, forgotten ones too, in the order of versions.
        vectors: the embeddings by model, each in the order of versions.
        twins: the ids of equal memories, by `twin_key`.
        summaries: the summaries of sessions, by agent and session.
        capture_days: what capture took on each day.
        captured_turns: the turns from which memories were captured.
        forgotten_texts: the keyed hashes of forgotten texts.
        waiting: the turns that wait to be captured, by key, in order.
    """

    owner: Owner
    last_version: int = 0
    rows: dict[int, Row] = field(factory=dict)
    changes: dict[int, IndexRow] = field(factory=dict)
    vectors: dict[str, dict[int, VectorRow]] = field(factory=dict)
    twins: dict[Hashable, set[int]] = field(factory=dict)
    summaries: dict[tuple[str, str], SessionSummary] = field(factory=dict)
    capture_days: dict[date, CaptureSpend] = field(factory=dict)
    captured_turns: set[str] = field(factory=set)
    forgotten_texts: set[bytes] = field(factory=set)
    waiting: dict[str, QueuedTurn] = field(factory=dict)

    def put(self, row: Row) -> None:
        """Store a new or changed memory, with a new version."""
        id_ = row.memory.id
        self._drop_twin(id_)
        self.rows[id_] = row
        self.twins.setdefault(twin_key(row.memory), set()).add(id_)
        _append(self.changes, id_, index_row(row, self._next_version()))

    def restore(self, row: Row | None, copied: IndexRow) -> None:
        """Store a memory, or that one was forgotten, under its own version."""
        self._drop_twin(copied.id)
        self.rows.pop(copied.id, None)
        self.outdate(copied.id)
        if row is not None:
            self.rows[copied.id] = row
            self.twins.setdefault(twin_key(row.memory), set()).add(copied.id)
        _place(self.changes, copied.id, copied)
        self.last_version = max(self.last_version, copied.version)

    def restore_vector(self, model: str, row: VectorRow) -> None:
        """Store an embedding under its own version."""
        _place(self.vectors.setdefault(model, {}), row.id, row)
        self.last_version = max(self.last_version, row.version)

    def erase(self, id_: int, at: datetime) -> None:
        """Erase a memory and its embeddings; its id, its uid and a new version remain."""
        self._drop_twin(id_)
        del self.rows[id_]
        self.outdate(id_)
        updated = seconds(micros_or_none(at), 0.0)
        row = IndexRow(id=id_, version=self._next_version(), uid=self.changes[id_].uid, gone=True, updated=updated)
        _append(self.changes, id_, row)

    def put_vector(self, model: str, id_: int, data: bytes) -> None:
        """Store an embedding in place of an earlier one, with a new version."""
        row = VectorRow(id=id_, version=self._next_version(), data=data)
        _append(self.vectors.setdefault(model, {}), id_, row)

    def outdate(self, id_: int) -> None:
        """Delete the embeddings of a memory."""
        for rows in self.vectors.values():
            rows.pop(id_, None)

    def renew(self, id_: int) -> None:
        """Give the embeddings of a memory new versions."""
        for model, rows in self.vectors.items():
            if id_ in rows:
                self.put_vector(model, id_, rows[id_].data)

    def set_terms(self, id_: int, terms: bytes, length: int) -> None:
        """Store other terms of a memory, without a new version."""
        row = self.rows[id_]
        row.terms, row.length = terms, length
        self.changes[id_] = attrs.evolve(self.changes[id_], terms=terms, length=length)

    def _next_version(self) -> int:
        self.last_version += 1
        return self.last_version

    def _drop_twin(self, id_: int) -> None:
        if (old := self.rows.get(id_)) is not None:
            key = twin_key(old.memory)
            self.twins[key].discard(id_)
            if not self.twins[key]:
                del self.twins[key]


@attrs.define(eq=False)
class Tenant:
    """The ids of one tenant.

    Attributes:
        last_id: the last id that a memory got; none is used again.
        homes: the table that holds each memory, by id.
        uids: the id of each memory by its uid, forgotten ones too.
    """

    last_id: int = 0
    uids: dict[bytes, int] = field(factory=dict)
    homes: dict[int, OwnerTable] = field(factory=dict)


@attrs.define(eq=False)
class Database:
    """All rows of a store in memory; several stores may be open over one database.

    Attributes:
        identity: the random name of the database.
        lock: held by each operation.
        analyser: the version of the analyser that made the terms, 0 at first.
        tables: the tables by owner, in the order of their first write.
        tenants: the tenants by name.
    """

    identity: str = field(factory=lambda: secrets.token_hex(16))
    lock: threading.RLock = field(factory=threading.RLock, repr=False)
    analyser: int = 0
    tables: dict[Owner, OwnerTable] = field(factory=dict)
    tenants: dict[str, Tenant] = field(factory=dict)

    def table(self, owner: Owner) -> OwnerTable | None:
        """Return the table of an owner, `None` for one that never wrote."""
        return self.tables.get(key_of(owner))

    def made(self, owner: Owner) -> OwnerTable:
        """Return the table of an owner, a new one for the first write."""
        key = key_of(owner)
        return self.tables.setdefault(key, OwnerTable(key))

    def tenant(self, name: str) -> Tenant:
        """Return the ids of a tenant."""
        return self.tenants.setdefault(cleaned(name), Tenant())

    def found(self, owners: Iterable[Owner]) -> list[OwnerTable]:
        """Return the tables of owners, without the owners that never wrote."""
        tables = (self.table(owner) for owner in owners)
        return [table for table in tables if table is not None]


def key_of(owner: Owner) -> Owner:
    """Return an owner whose names every store can hold."""
    return Owner(tenant=cleaned(owner.tenant), user=cleaned(owner.user), kind=owner.kind)


def newer(rows: dict[int, V], after: int, limit: int) -> list[V]:
    """Return the rows above a version, of rows in the order of versions, at most `limit`."""
    found = [*itertools.takewhile(lambda row: row.version > after, reversed(rows.values()))]
    return found[::-1][: bounded(limit)]


def last_of(rows: dict[int, V]) -> int:
    """Return the version of the newest row, 0 if there is none."""
    return next((row.version for row in reversed(rows.values())), 0)


def twin_key(memory: Memory) -> Hashable:
    """Return the values in which equal memories agree; see `MemoryStore.remember`."""
    project = "" if memory.scope == "global" else memory.project
    session = memory.session if memory.scope == "session" else ""
    place = (memory.store, memory.agent, memory.scope, project, session)
    return memory.title, memory.narrative, memory.facts, place, memory.valid_from, memory.valid_until


def index_row(row: Row, version: int) -> IndexRow:
    """Return the fields of a memory that an index uses."""
    memory, never = row.memory, float("inf")
    columns = (memory.store, memory.type, memory.scope, memory.project, memory.session, memory.agent, memory.source)
    return IndexRow(
        id=memory.id,
        version=version,
        terms=row.terms,
        length=row.length,
        labels=labels_of(columns, memory.tags, memory.related_files, memory.related_people),
        session=memory.session,
        speaker=memory.speaker,
        created=seconds(micros_or_none(memory.created_at), 0.0),
        updated=seconds(micros_or_none(memory.updated_at), 0.0),
        expires=seconds(micros_or_none(memory.expires_at), never),
        valid_from=seconds(micros_or_none(memory.valid_from), -never),
        valid_until=seconds(micros_or_none(memory.valid_until), never),
        mentions=memory.mention_count,
        importance=memory.importance,
        confidence=memory.confidence,
        pinned=memory.pinned,
        uid=bytes.fromhex(memory.uid),
        doubted_by=memory.doubted_by,
    )


def _place(rows: dict[int, V], id_: int, row: V) -> None:
    """Set a row and keep the order of versions."""
    _append(rows, id_, row)
    ordered = sorted(rows.items(), key=lambda item: item[1].version)
    if [*rows] != [each for each, _ in ordered]:
        rows.clear()
        rows.update(ordered)


def _append(rows: dict[int, V], id_: int, row: V) -> None:
    """Set a row as the last one: the rows stay in the order of versions."""
    rows.pop(id_, None)
    rows[id_] = row
