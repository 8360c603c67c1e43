"""The protocol of a store of many tenants, of which a caller may serve one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs
from attrs import field

from beaver_memory.records import Change, Memory, Owner, QueuedSession
from beaver_memory.store.protocol import IndexRow, SingleStore, VectorRow
from beaver_memory.store.turn_queue import TurnQueue

PART = "/"
"""Stands between a tenant and the name of its part."""


@attrs.frozen(kw_only=True)
class MemoryCopy:
    """A memory as another store holds it.

    Attributes:
        row: its id, version and terms, or that it was forgotten.
        memory: the memory, `None` if it was forgotten.
        added_at: when the other store got it; of a forgotten memory, when it was forgotten.
        history: its changes, oldest first, without its addition.
    """

    row: IndexRow
    memory: Memory | None = field(repr=False)
    added_at: datetime
    history: tuple[Change, ...] = field(default=(), repr=False)


class SharedTurnQueue(TurnQueue, Protocol):
    """The turns of many tenants that wait to be captured."""

    def sessions_of(
        self, name: str | None, now: datetime, *, limit: int, before: datetime | None
    ) -> list[QueuedSession]:
        """Return the sessions of a tenant whose turns are due."""

    def owners_of(self, name: str | None) -> list[Owner]:
        """Return the owners of a tenant that have waiting turns."""


class SharedStore(SingleStore, Protocol):
    """A store of many tenants. A tenant has its parts, `tenant/…`, with it."""

    @property
    def queue(self) -> SharedTurnQueue:
        """The turns that wait to be captured."""

    def owners_of(self, tenant: str) -> list[Owner]:
        """Return the owners of a tenant that have memories."""

    def pending_of(self, tenant: str, model: str) -> int:
        """Return how many live memories of a tenant have no embedding by `model`."""

    def drop_vectors_of(self, tenant: str, model: str) -> int:
        """Delete the embeddings of a tenant by a model; return their number."""

    def stats_of(self, tenant: str) -> Mapping[str, Any]:
        """Return the figures of a tenant; see `MemoryStore.stats`. Its bytes are those of texts and embeddings."""

    def check_of(self, tenant: str) -> list[str]:
        """Return the problems of a tenant, one sentence each."""

    def restore(self, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
        """Store memories of another store under their ids and versions, in place of earlier copies, in one transaction.

        Later ids and versions are above all of them.
        """

    def restore_vectors(self, owner: Owner, model: str, rows: Sequence[VectorRow]) -> None:
        """Store embeddings of another store under their versions, in one transaction."""


def is_part(name: str, tenant: str) -> bool:
    """Return whether a tenant is another one or a part of it."""
    return name == tenant or name.startswith(tenant + PART)
