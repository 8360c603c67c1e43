"""Keeps the terms of a store to those of one analyser.

The store records the version of its analyser. Terms of an older analyser are made anew before any search. Each step is
one transaction, so other writers get their turn and an interruption loses nothing: the next process that opens the
store continues. The first step gives the store to the newer analyser, so that no writer adds terms of the older one
behind it.

No memory gets a new version by this: an index belongs to one analyser, and indexes of the older one are rebuilt anyway.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory, Owner
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import checksum_of
from beaver_memory.store.sqlite.owners import owners
from beaver_memory.store.sqlite.rows import Parts, each_row, parts_of, whole_memory

_SQL = queries_of("sqlite", "rebuild_terms")

AT_ONCE = 1_000
"""Memories of one step."""


def trouble(connection: apsw.Connection, analyser: int) -> str:
    """Return why a store's terms and those of an analyser must not mix, as a category of `StoreError`, or nothing."""
    fact = connection.execute(_SQL["analyser"]).get
    if fact == str(analyser):
        return ""
    # Older than this analyser though the store was settled: an older copy has replaced the database.
    return "newer" if _version(fact) > analyser else "replaced"


def step(connection: apsw.Connection, analyser: int, analyse: Callable[[Memory], Analysed]) -> str:
    """Make the terms of the next memories, within one transaction; return the result of `trouble`, nothing at the end.

    Does nothing if the store has the terms of this analyser or of a newer one.
    """
    # Read under the lock: another process may have been faster.
    why = trouble(connection, analyser)
    if why != "replaced":
        return why
    version, _, reached = connection.execute(_SQL["analyser"]).get.partition(":")
    found = _following(connection, int(reached or 0) if int(version) == analyser else 0)
    for row, old in found:
        if old is None:
            continue
        new = analyse(old)
        checksum = checksum_of(old, new.length, new.terms)
        connection.execute(_SQL["set_terms"], (new.terms, new.length, checksum, row))
    connection.execute(_SQL["set_analyser"], (str(analyser) if len(found) < AT_ONCE else f"{analyser}:{found[-1][0]}",))
    return trouble(connection, analyser)


def _version(fact: str | None) -> int:
    version = (fact or "").partition(":")[0]
    if not version.isdecimal():
        raise apsw.CorruptError("nothing that tells an analyser")
    return int(version)


def _following(connection: apsw.Connection, row: int) -> list[tuple[int, Memory | None]]:
    """Return the next memories after a row, with their rows; `None` for a damaged one, whose terms stay."""
    known = owners(connection)
    parts = parts_of(known)
    rows = each_row(connection, _SQL["following_memories"], (row, AT_ONCE))
    return [(number, _whole(values, known, parts)) for *values, number in rows]


def _whole(values: Sequence[Any], known: Mapping[int, Owner], parts: Parts) -> Memory | None:
    try:
        return whole_memory(values, known, parts)
    except DamagedRow:
        return None
