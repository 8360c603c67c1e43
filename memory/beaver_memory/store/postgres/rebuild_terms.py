"""Keeps the terms of a store to those of one analyser.

The store records the version of its analyser. Terms of an older analyser are made anew before any search. Each step is
one transaction, so other writers get their turn and an interruption loses nothing: the next process that opens the
store continues. The first step gives the store to the newer analyser. A step waits for the writers that have begun, and
later ones meet the newer analyser: so none adds terms of the older one behind it.

No memory gets a new version by this: an index belongs to one analyser, and indexes of the older one are rebuilt anyway.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from beaver_memory.errors import DamagedRow
from beaver_memory.records import Memory
from beaver_memory.store.postgres.owners import OwnerKey, all_owners
from beaver_memory.store.postgres.rows import COLUMNS, Stored, stored_of, words_of
from beaver_memory.store.postgres.update import checksum_of
from beaver_memory.store.protocol import Analysed
from beaver_memory.store.queries import queries_of

_SQL = queries_of("postgres", "rebuild_terms")

AT_ONCE = 1_000
"""Memories of one step."""


def analyser_of(connection: Any) -> Any:
    """Ask for the analyser of a store; `trouble` reads the answer."""
    return connection.execute(_SQL["analyser"])


def trouble(answer: Any, analyser: int) -> str:
    """Return why a store's terms and those of an analyser must not mix, as a category of `StoreError`, or nothing."""
    row = answer.fetchone()
    fact = "" if row is None else str(row[0])
    if fact == str(analyser):
        return ""
    # Older than this analyser though the store was settled: an older copy has replaced the database.
    return "newer" if _parts(fact)[0] > analyser else "replaced_database"


def step(connection: Any, analyser: int, analyse: Callable[[Memory], Analysed]) -> str:
    """Make the terms of the next memories, within one transaction; return the result of `trouble`, nothing at the end.

    Does nothing if the store has the terms of this analyser or of a newer one.
    """
    connection.execute(_SQL["own_terms"])
    # Read under the lock: another process may have been faster.
    why = trouble(analyser_of(connection), analyser)
    if why != "replaced_database":
        return why
    version, *place = _parts(str(analyser_of(connection).fetchone()[0]))
    last = _rebuild(connection, place if version == analyser else (0, 0), analyse)
    fact = str(analyser) if last is None else f"{analyser}:{last[0]}:{last[1]}"
    connection.execute(_SQL["set_analyser"], {"fact": fact})
    return "" if last is None else "replaced_database"


def _rebuild(connection: Any, place: Sequence[int], analyse: Callable[[Memory], Analysed]) -> tuple[int, int] | None:
    """Make the terms of the memories after a tenant and an id; return those of the last one, `None` at the end."""
    given = {"tenant": place[0], "id": place[1], "limit": AT_ONCE}
    rows = connection.execute(_SQL["following_memories"].format(columns=COLUMNS), given, binary=True).fetchall()
    owners = {tenant: all_owners(connection, tenant) for tenant in {row[0] for row in rows}}
    lengths: dict[OwnerKey, int] = defaultdict(int)
    changed = []
    for tenant, id_, owner, *row in rows:
        found = stored_of(row, owners[tenant])
        if found is None:
            raise DamagedRow(f"memory {id_}")
        new, key = analyse(found.memory), OwnerKey(tenant, owner)
        lengths[key] += new.length - found.length
        changed.append(_values(key, Stored(found.memory, new.terms, new.length)))
    _set(connection, changed, lengths)
    return (rows[-1][0], rows[-1][1]) if len(rows) == AT_ONCE else None


def _values(key: OwnerKey, new: Stored) -> dict[str, Any]:
    terms = {"terms": new.terms, "length": new.length, "words": words_of(key, new.terms)}
    return {"tenant": key.tenant, "id": new.memory.id, "checksum": checksum_of(new)} | terms


def _set(connection: Any, changed: Sequence[dict[str, Any]], lengths: dict[OwnerKey, int]) -> None:
    counts = [{"tenant": key.tenant, "owner": key.owner, "length": length} for key, length in lengths.items()]
    with connection.cursor() as cursor:
        cursor.executemany(_SQL["set_terms"], changed)
        cursor.executemany(_SQL["add_length"], counts)


def _parts(fact: str) -> list[int]:
    """Return the version of the analyser, and the tenant and the id of the last rebuilt memory, if there is one."""
    try:
        return [int(part) for part in fact.split(":")]
    except ValueError as error:
        raise DamagedRow("nothing that tells an analyser") from error
