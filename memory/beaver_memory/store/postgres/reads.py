"""Questions about visible memories.

`recalled` reads the memories that a search shows together with the versions of their owners, by one statement. To plan
this statement takes twice as long as to carry it out. So it has connections of its own, where it is planned once for
all partitions; when it runs it touches one. All other statements are planned for their values.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from beaver_memory.patterns import Pattern
from beaver_memory.records import Change, Memory, Owner, Store
from beaver_memory.store.bounds import LARGEST, bounded, usable
from beaver_memory.store.checksums import change_checksum
from beaver_memory.store.postgres.owners import OwnerKey
from beaver_memory.store.postgres.rows import COLUMNS, Stored, is_whole, memories_of, readings, salted, stored_of
from beaver_memory.store.postgres.sql_filters import Seen
from beaver_memory.store.queries import queries_of
from beaver_memory.store.rows import retold
from beaver_memory.texts import micros, moment

_SQL = queries_of("postgres", "reads")

Bound = tuple[str, int, int]

_VERSIONS = 3
"""Columns before those of the memory."""

MOST_PATTERNS = 16
"""Patterns that the store compares; the caller compares all of them."""


def visible(connection: Any, seen: Seen, ids: Iterable[int]) -> dict[int, Memory]:
    """Return the visible memories among `ids`, by id."""
    which = usable(ids)
    if not seen.owners or not which:
        return {}
    sql = _SQL["memories_by_id"].format(columns=COLUMNS, conditions=seen.which.sql)
    rows = connection.execute(sql, seen.params(ids=which), binary=True).fetchall()
    return {memory.id: memory for memory in memories_of(rows, seen.owners)}


class Place(NamedTuple):
    """What an erasure needs of a row: the number of its owner, its moment, its length in terms, and its uid."""

    owner: int
    created_at: int
    length: int
    uid: bytes


def damaged_places(connection: Any, seen: Seen, ids: Iterable[int]) -> dict[int, Place]:
    """Return the memories that fail their checksums, by id, if all stores are visible: none tells its store."""
    which = usable(ids)
    if not (seen.owners and which and seen.every_store):
        return {}
    columns = f"o.id, o.owner, o.created_at, o.length, o.uid, {COLUMNS}"
    sql = _SQL["memories_by_id"].format(columns=columns, conditions="o.deleted_at IS NULL")
    rows = connection.execute(sql, seen.params(ids=which), binary=True).fetchall()
    return {row[0]: Place(*row[1:5]) for row in rows if not is_whole(row[5:], seen.owners)}


def locked(connection: Any, seen: Seen, ids: Iterable[int]) -> dict[int, Stored]:
    """Return the visible memories among `ids` with their terms, by id; no other writer changes them until the commit.

    This locks their owners first, and reads afterwards: a statement sees no commit that ended while it waited.
    """
    which = usable(ids)
    if not seen.owners or not which:
        return {}
    connection.execute(_SQL["lock_owners_of"], seen.params(ids=which)).fetchall()
    sql = _SQL["memories_by_id_locked"].format(columns=COLUMNS, conditions=seen.which.sql)
    rows = connection.execute(sql, seen.params(ids=which), binary=True).fetchall()
    found = (stored_of(row, seen.owners) for row in rows)
    return {each.memory.id: each for each in found if each is not None}


def recent(connection: Any, seen: Seen, limit: int) -> list[Memory]:
    """Return the newest visible memories, newest first."""
    return _walk(connection, seen, bounded(limit), None)


def timeline(connection: Any, seen: Seen, anchor: int, *, before: int, after: int) -> list[Memory]:
    """Return a memory with its neighbours in time, oldest first; an empty list if it is not visible."""
    found = visible(connection, seen, [anchor])
    if not found:
        return []
    # A stored memory has a time.
    at = micros(found[anchor].created_at or found[anchor].updated_at)
    earlier, later = neighbours(connection, seen, (at, anchor), before=before, after=after)
    return [*reversed(earlier), found[anchor], *later]


def neighbours(
    connection: Any, seen: Seen, place: tuple[int, int], *, before: int, after: int
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories before and after a moment and an id, the nearest first."""
    at, id_ = place[0], min(max(place[1], 0), LARGEST)
    earlier = _walk(connection, seen, bounded(before), ("<", at, id_))
    return earlier, _walk(connection, seen, bounded(after), (">", at, id_))


def history(connection: Any, seen: Seen, memory: Memory, stores: Collection[Store]) -> list[Change]:
    """Return the history of a memory, oldest first: its addition, and the changes within these stores."""
    given = {"tenant": seen.tenant, "id": memory.id}
    entries, store = [], memory.store
    for event, at, old, new, checksum in connection.execute(_SQL["history"], given, binary=True).fetchall():
        if change_checksum(memory.id, event, at, old, new) != checksum:
            continue
        entry = Change(event=event, at=moment(at), old=retold(old), new=retold(new))
        # An entry holds only the changed fields: going backwards tells in which store the memory was before.
        before = entry.old.get("store", store)
        if {before, store} <= {*stores}:
            entries.append(entry)
        store = before
    added = connection.execute(_SQL["added_at"], given).fetchone()[0]
    return [Change(event="ADD", at=moment(added)), *reversed(entries)]


def _walk(connection: Any, seen: Seen, limit: int, bound: Bound | None) -> list[Memory]:
    """Return memories in order of time: the newest first, or from a bound onwards."""
    if not seen.owners or not limit:
        return []
    side = "<" if bound is None else bound[0]
    bounds = "" if bound is None else _SQL["bounds"].format(side=side)
    order = "DESC" if side == "<" else "ASC"
    sql = _SQL["walk"].format(columns=COLUMNS, conditions=seen.which.sql, bounds=bounds, order=order)
    _, at, id_ = bound or ("", 0, 0)
    rows = connection.execute(sql, seen.params(limit=limit, at=at, id=id_), binary=True).fetchall()
    return memories_of(rows, seen.owners)


def recalled(
    connection: Any, seen: Seen, ids: Sequence[int], model: int
) -> tuple[dict[int, Memory], dict[Owner, tuple[int, int]]]:
    """Return the visible memories among `ids` by id, and the versions of the visible owners.

    Args:
        connection: a connection that plans a statement once.
        seen: what may be seen.
        ids: the memories.
        model: the number of the model of the vectors.
    """
    sql = _SQL["recalled"].format(columns=COLUMNS, conditions=seen.which.sql)
    rows = connection.execute(sql, seen.params(ids=usable(ids), model=model), binary=True, prepare=True).fetchall()
    memories = memories_of((row[_VERSIONS:] for row in rows if row[-1] is not None), seen.owners)
    return {memory.id: memory for memory in memories}, {seen.owners[row[0]]: (row[1], row[2]) for row in rows}


def matching(
    connection: Any, seen: Seen, patterns: Sequence[Pattern], limit: int, terms: Collection[int] = ()
) -> list[int]:
    """Return ids of visible memories that hold all patterns, newest first.

    Args:
        connection: a connection.
        seen: what may be seen.
        patterns: the patterns.
        limit: the most ids to return.
        terms: terms that the memories must have; the index of words finds those that have them all.
    """
    wanted = [_parts(pattern) for pattern in patterns[:MOST_PATTERNS]]
    if not seen.owners or not wanted or not all(wanted):
        return []
    holds = [seen.which.of_live if terms else seen.which.sql]
    given: dict[str, Any] = {}
    if terms:
        for number in seen.owners:
            given[f"words{number}"] = salted(OwnerKey(seen.tenant, number), terms)
        each = " OR ".join(_SQL["has_words"].format(words=name) for name in given)
        holds.append(f"({each})")
    holds_part = _SQL["holds"]
    for number, parts in enumerate(wanted):
        names = {f"part{number}_{place}": part for place, part in enumerate(parts)}
        holds.append(f"({' OR '.join(holds_part.format(part=name) for name in names)})")
        given |= names
    sql = _SQL["matching_with_words" if terms else "matching"].format(conditions=" AND ".join(holds))
    return [id_ for (id_,) in connection.execute(sql, seen.params(limit=bounded(limit), **given))]


def _parts(pattern: Pattern) -> list[str]:
    """Return texts of which a memory with the pattern holds one; none for a pattern without words."""
    return [f" {words}" if pattern.is_prefix else f" {words} " for words in readings(pattern.text)]
