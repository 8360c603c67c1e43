"""What a store of memories does. SQLite is one; the conformance suite in `store/conformance.py` says what all must do.

A store keeps records and knows no ranking. All methods may be called from several threads. A write has returned only
when it is durable. Every change of a memory gives it a new `version`, greater than all before it in the store: an index
asks for what has changed since the last version that it has seen, so it can always catch up, and several processes may
write at once.

`MemoryStore` is what those ask who read and write memories. `SingleStore` is one database: an index is made of it, and
`joint.JointStore` of two.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

import attrs
from attrs import field

from beaver_memory.filters import Filters
from beaver_memory.records import Memory, NewMemory, Owner, Scope


@attrs.frozen(kw_only=True)
class Analysed:
    """A memory with what the index needs of it, made once when it is written.

    Attributes:
        memory: what is to be remembered.
        terms: its terms, packed: see `index/terms.py`.
        length: how many terms it has, counted as often as they occur.
    """

    memory: NewMemory
    terms: bytes = field(repr=False)
    length: int


@attrs.frozen(kw_only=True)
class Kept:
    """What became of a memory that was to be remembered.

    Attributes:
        id: its id, or that of the same memory that was there.
        outcome: whether it was there.
        mentions: how often it was said.
    """

    id: int
    outcome: Literal["stored", "duplicate"]
    mentions: int = 1


@attrs.frozen(kw_only=True)
class IndexRow:
    """What an index knows of one memory.

    Attributes:
        id: the memory.
        version: of this state of it.
        gone: it was forgotten; the rest says nothing then.
        terms: its terms, packed.
        length: how many terms it has.
        labels: what is filtered by: `store:private`, `type:fact`, `tag:x`, `person:ann` (folded), `file:src/a.py` and
            `dir:src` for each folder above it, `scope:global`, `project:p`, `session:s`, `agent:a`, `source:user`.
        session: the session that it stems from.
        speaker: who said it.
        created, expires, valid_from, valid_until: seconds since the epoch; infinity for never, minus
            infinity for always.
        updated: likewise; of one that is gone, when it was forgotten.
        mentions, importance, confidence: for ranking.
        pinned: likewise.
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


@attrs.frozen(kw_only=True)
class VectorRow:
    """The embedding of one memory: `data` is its float16 values, little-endian; `version` as for memories."""

    id: int
    version: int
    data: bytes = field(repr=False)


@attrs.frozen(kw_only=True)
class Change:
    """One entry of a memory's history.

    Attributes:
        event: `ADD`, `UPDATE`, `DELETE`, `COMPRESS`, `FORGET`, `PIN`, `UNPIN`, `SUPERSEDE`.
        at: when.
        old: the fields that changed, as they were; empty where they are forgotten.
        new: the same, as they are.
    """

    event: str
    at: datetime
    old: Mapping[str, Any] = field(factory=dict)
    new: Mapping[str, Any] = field(factory=dict)


@attrs.frozen(kw_only=True)
class Person:
    """Somebody who is mentioned."""

    name: str
    aliases: tuple[str, ...] = ()
    mention_count: int = 1
    last_mentioned: datetime


@attrs.frozen(kw_only=True)
class SessionSummary:
    """What a session of an agent came to."""

    session: str
    agent: str = ""
    request: str = ""
    outcome: str = ""
    decisions: tuple[str, ...] = ()
    open_items: tuple[str, ...] = ()
    observation_count: int = 0
    created_at: datetime


class MemoryStore(Protocol):
    """Keeps memories."""

    def add(self, items: Sequence[Analysed], *, now: datetime) -> list[int]:
        """Store memories in one transaction; return their ids, in order."""

    def remember(self, items: Sequence[Analysed], *, now: datetime, mention: bool) -> list[Kept]:
        """Store memories that are not there yet, in one transaction; return what became of each, in order.

        What is there says the same, word for word, for the same owner, store and agent, with the same scope and in it
        the same project or session, and holds for the same time. It is mentioned once more if `mention`, and expires
        when the later of both does.
        """

    def get(self, ids: Sequence[int], filters: Filters) -> list[Memory]:
        """Return the memories among `ids` that may be seen, in the order of `ids`."""

    def recent(self, filters: Filters, *, limit: int) -> list[Memory]:
        """Return the newest memories that may be seen, newest first."""

    def timeline(self, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
        """Return a memory with its neighbours in time, oldest first; nothing if the anchor may not be seen."""

    def touch(self, ids: Iterable[int], *, now: datetime) -> None:
        """Note that memories were recalled; gives no new version."""

    def change(self, id_: int, filters: Filters, *, event: str, now: datetime, **fields: Any) -> Memory | None:
        """Change fields of one memory that may be seen, with an entry in its history; `None` if there is none.

        Fields are those of `Memory`; with `title`, `narrative`, `facts` or `keywords` come `terms` and `length`.
        """

    def forget(self, ids: Sequence[int], filters: Filters, *, now: datetime) -> list[int]:
        """Erase memories that may be seen: text, terms, embedding and the texts in their history; return their ids."""

    def history(self, id_: int, filters: Filters) -> list[Change]:
        """Return what happened to a memory that may be seen, oldest first, but for changes in other stores."""

    def people(self, filters: Filters, *, query: str, limit: int) -> list[Person]:
        """Return people that visible memories are related to, most mentioned first."""

    def summaries(self, owner: Owner, *, limit: int) -> list[SessionSummary]:
        """Return the newest session summaries."""

    def summarise(self, owner: Owner, summary: SessionSummary) -> None:
        """Store the summary of an agent's session in place of an earlier one."""

    def settle(self, analyser: int, analyse: Callable[[Memory], Analysed]) -> None:
        """See to it that all terms are of one analyser: those of an older one are made anew, a newer one is refused.

        A store that has no analyser yet takes the terms that it is given.
        """

    def count(self, owner: Owner) -> int:
        """Return how many memories of an owner are not forgotten."""

    def ids(self, owner: Owner, scopes: Collection[Scope] = ()) -> list[int]:
        """Return the ids of an owner's memories, in the order of their last change; with `scopes` of those alone."""

    def owners(self) -> list[Owner]:
        """Return whose memories there are."""

    def pending(self, owner: Owner | None, model: str) -> int:
        """Return how many live memories have no embedding by `model`: an owner's, or everybody's."""

    def drop_vectors(self, model: str) -> int:
        """Delete all embeddings by a model; return how many there were."""

    def stats(self) -> Mapping[str, Any]:
        """Return what there is, in numbers: memories by store and type, embeddings by model, bytes on disk."""

    def check(self) -> list[str]:
        """Return what is wrong with the store, one sentence each; nothing if it is whole."""

    def close(self) -> None:
        """Close it. Closing again does nothing."""


class SingleStore(MemoryStore, Protocol):
    """One database of memories."""

    @property
    def identity(self) -> str:
        """A random name of this store, made once: caches that carry another one are not of this store."""

    def knows(self, items: Sequence[Analysed], *, now: datetime) -> list[bool]:
        """Return which memories `remember` would find there already."""

    def neighbours(
        self, at: datetime, id_: int, filters: Filters, *, before: int, after: int
    ) -> tuple[list[Memory], list[Memory]]:
        """Return the memories before and after a moment and an id, the nearest first."""

    def versions(self, owners: Sequence[Owner], model: str | None = None) -> list[tuple[int, int]]:
        """Return `last_version` and, with a model, `last_vector` of each owner: the cheap question before a search.

        All of them are of one moment. Without a model the second number is 0.
        """

    def last_version(self, owner: Owner) -> int:
        """Return the version of the newest change of an owner's memories, 0 if there is none."""

    def changed(self, owner: Owner, after: int, *, limit: int) -> list[IndexRow]:
        """Return the rows that have a version above `after`, in order of versions, at most `limit`."""

    def unembedded(self, owner: Owner, model: str, *, limit: int) -> list[tuple[int, str]]:
        """Return ids and texts of live memories that have no embedding by `model`, newest first."""

    def put_vectors(
        self, owner: Owner, model: str, vectors: Sequence[tuple[int, bytes]], *, texts: Mapping[int, str] | None = None
    ) -> None:
        """Store embeddings by `model`, in place of earlier ones by it; those of forgotten memories are left out.

        With `texts`, as `unembedded` told them, those are left out as well whose memory says something else by now.
        """

    def vectors(self, owner: Owner, model: str, after: int, *, limit: int) -> list[VectorRow]:
        """Return embeddings that were stored after version `after`, in order of versions.

        An embedding has a new version, too, where its memory says the same and has other terms: an index tells by them
        what it has the vector of.
        """

    def last_vector(self, owner: Owner, model: str) -> int:
        """Return the version of the newest embedding by `model`, 0 if there is none."""
