"""The rows that a migration copies: of which database, under which numbers, and their digests."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import attrs

from beaver_memory.records import Owner
from beaver_memory.store.joint import EVERYWHERE, PERSONAL_IDS, JointStore
from beaver_memory.store.protocol import IndexRow, MemoryCopy, MemoryStore, SingleStore, VectorRow
from beaver_memory.store.sqlite import SqliteStore

PAGE = 500
"""Memories of one transaction."""

PERSONAL_VERSIONS = 2**40
"""The offset of the versions of the person's memories. No owner of a project has so many changes."""


@attrs.frozen(kw_only=True)
class Part:
    """One database of the store, and how its numbers are changed.

    Attributes:
        store: the database.
        ids, versions: are added to its ids and its versions.
        everywhere: whether only its global memories are copied.
    """

    store: SingleStore
    ids: int = 0
    versions: int = 0
    everywhere: bool = False


class Mark(NamedTuple):
    """A row of the source: its database, its new version, whether it was forgotten, and when it was said."""

    part: Part
    version: int
    gone: bool
    created: float

    def may_replace(self, row: IndexRow) -> bool:
        """Return whether a row of the tenant is a copy of this row, which has not changed there."""
        return row.version <= self.version and (self.gone or row.created == self.created)


Marks = dict[int, Mark]
"""The rows of an owner by their new ids."""


def parts_of(source: MemoryStore) -> tuple[Part, ...]:
    """Return the databases of a store."""
    if not isinstance(source, JointStore):
        return (Part(store=source),)  # type: ignore[arg-type]  # every store but the joint one is a single one
    project, personal = source.parts
    mine = Part(store=project)
    if personal is None:
        return (mine,)
    return mine, Part(store=personal, ids=PERSONAL_IDS, versions=PERSONAL_VERSIONS, everywhere=True)


def owners_of(store: SingleStore) -> list[Owner]:
    """Return the owners of a store; in files also those whose memories are all forgotten, for their ids."""
    return store.known_owners() if isinstance(store, SqliteStore) else store.owners(None)


def changed_rows(store: SingleStore, owner: Owner, after: int = 0) -> Iterator[IndexRow]:
    """Yield an owner's rows in the order of their versions."""
    while rows := store.changed(owner, after, limit=PAGE):
        yield from rows
        after = rows[-1].version


def vector_rows(store: SingleStore, owner: Owner, model: str) -> list[VectorRow]:
    """Return an owner's embeddings by a model."""
    found: list[VectorRow] = []
    while rows := store.vectors(owner, model, found[-1].version if found else 0, limit=PAGE):
        found += rows
    return found


def moved_vector(part: Part, row: VectorRow) -> VectorRow:
    """Return an embedding with its numbers in the tenant."""
    return attrs.evolve(row, id=row.id + part.ids, version=row.version + part.versions)


def rows_by_id(store: SingleStore, owner: Owner) -> dict[int, IndexRow]:
    """Return an owner's rows by their ids."""
    return {row.id: row for row in changed_rows(store, owner)}


def count_others(marks: Marks, rows: Mapping[int, IndexRow]) -> int:
    """Return how many rows of the tenant are no unchanged copies of an owner's memories.

    A forgotten memory tells nothing of itself. So its live copy is taken for one beside another copy only.
    """
    others = sum(id_ not in marks or not marks[id_].may_replace(row) for id_, row in rows.items())
    erased = sum(id_ in marks and marks[id_].gone and not row.gone for id_, row in rows.items())
    return others or (erased if erased == len(rows) else 0)


def missing_rows(marks: Marks, there: Mapping[int, IndexRow]) -> Marks:
    """Return the rows that the tenant lacks, or has in another version."""
    return {id_: mark for id_, mark in marks.items() if id_ not in there or there[id_].version != mark.version}


def is_copied(part: Part, row: IndexRow) -> bool:
    """Return whether a row comes along: all of a project, and the global ones of the person."""
    return not part.everywhere or row.gone or f"scope:{EVERYWHERE}" in row.labels


def digest_of_copy(copy: MemoryCopy) -> bytes:
    """Return the digest of everything that a memory consists of."""
    memory = None if copy.memory is None else attrs.astuple(copy.memory, recurse=False)
    row = (copy.row.id, copy.row.uid, copy.row.version, copy.row.gone, copy.row.terms, copy.row.length)
    changes = [(each.event, each.at, sorted(each.old.items()), sorted(each.new.items())) for each in copy.history]
    return hashlib.sha256(repr((memory, row, copy.added_at, changes)).encode("utf-8", "replace")).digest()


def add_vector(found: dict[int, bytes], id_: int, model: str, row: VectorRow) -> None:
    """Add an embedding to the digest of its memory."""
    whole = b"".join((found.get(id_, b""), model.encode(), row.version.to_bytes(8, "big"), row.data))
    found[id_] = hashlib.sha256(whole).digest()
