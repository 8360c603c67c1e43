"""The protocol of a store that takes over the memories of another one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import attrs
from attrs import field

from beaver_memory.records import Change, Memory, Owner
from beaver_memory.store.protocol import IndexRow, SingleStore, VectorRow


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


class SharedStore(SingleStore, Protocol):
    """A store that takes over the memories of another one."""

    def restore(self, owner: Owner, copies: Sequence[MemoryCopy]) -> None:
        """Store memories of another store under their ids and versions, in place of earlier copies, in one transaction.

        Later ids and versions are above all of them.
        """

    def restore_vectors(self, owner: Owner, model: str, rows: Sequence[VectorRow]) -> None:
        """Store embeddings of another store under their versions, in one transaction."""
