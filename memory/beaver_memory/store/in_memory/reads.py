"""Questions about visible memories."""

from collections.abc import Collection, Iterable
from datetime import datetime

from beaver_memory.filters import Filters
from beaver_memory.records import Change, Memory, Person
from beaver_memory.store.bounds import bounded
from beaver_memory.store.changes import visible_history
from beaver_memory.store.in_memory.tables import Database, OwnerTable, Row
from beaver_memory.store.in_memory.visibility import condition, said
from beaver_memory.store.people import mentions, ranked
from beaver_memory.texts import cleaned_all


def tables_of(database: Database, filters: Filters) -> list[OwnerTable]:
    """Return the tables of the visible owners; none if the filters allow no store."""
    return database.found(filters.view.owners if filters.view.stores else ())


def visible(database: Database, ids: Iterable[int], filters: Filters) -> dict[int, Row]:
    """Return the visible memories among `ids`, by id, in their order."""
    homes, tables, is_visible = (
        database.tenant(filters.view.tenant).homes,
        tables_of(database, filters),
        condition(filters),
    )
    found = {id_: home.rows[id_] for id_ in ids if (home := homes.get(id_)) is not None and home in tables}
    return {id_: row for id_, row in found.items() if is_visible(row)}


def everything(database: Database, filters: Filters) -> list[Row]:
    """Return all visible memories, in no order."""
    is_visible = condition(filters)
    return [row for table in tables_of(database, filters) for row in table.rows.values() if is_visible(row)]


def recent(database: Database, filters: Filters, limit: int) -> list[Memory]:
    """Return the newest visible memories, newest first."""
    found = sorted((row.memory for row in everything(database, filters)), key=age, reverse=True)
    return found[: bounded(limit)]


def neighbours(
    database: Database, place: tuple[datetime, int], filters: Filters, *, before: int, after: int
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories before and after a moment and an id, the nearest first."""
    found = sorted((row.memory for row in everything(database, filters)), key=age)
    earlier = [memory for memory in found if age(memory) < place]
    later = [memory for memory in found if age(memory) > place]
    return earlier[::-1][: bounded(before)], later[: bounded(after)]


def timeline(database: Database, anchor: int, filters: Filters, *, before: int, after: int) -> list[Memory]:
    """Return a memory with its neighbours in time, oldest first; an empty list if it is not visible."""
    found = visible(database, [anchor], filters)
    if not found:
        return []
    memory = found[anchor].memory
    earlier, later = neighbours(database, age(memory), filters, before=before, after=after)
    return [*reversed(earlier), memory, *later]


def history(database: Database, id_: int, filters: Filters) -> list[Change]:
    """Return the visible history of a visible memory, oldest first."""
    return [
        change
        for row in visible(database, [id_], filters).values()
        for change in visible_history(row.added_at, row.history, row.memory.store, filters.view.stores)
    ]


def people(database: Database, filters: Filters, query: str, limit: int) -> list[Person]:
    """Return people that visible memories are related to, most mentioned first."""
    is_visible = condition(filters)
    found = [
        person
        for table in tables_of(database, filters)
        for memory in sorted((row.memory for row in table.rows.values() if is_visible(row)), key=_id)
        for person in mentions(cleaned_all(memory.related_people), said(memory))
    ]
    return ranked(found, query, limit)


def scoped(table: OwnerTable, scopes: Collection[str]) -> list[int]:
    """Return the ids of an owner's memories in the order of their last change, all or those of `scopes`."""
    live = (table.rows[id_].memory for id_ in table.changes if id_ in table.rows)
    return [memory.id for memory in live if not scopes or memory.scope in scopes]


def age(memory: Memory) -> tuple[datetime, int]:
    """Return the place of a memory in time."""
    return said(memory), memory.id


def _id(memory: Memory) -> int:
    return memory.id
