"""Questions about visible memories: filters as a condition on rows, so that no result is filtered afterwards.

`matching` reads a text in two ways: without accents and compatibility forms, as the caller compares it, and as it is
written. A memory that holds a pattern in one of them is found.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import cast

from beaver_memory.filters import Filters
from beaver_memory.patterns import Pattern, words_in
from beaver_memory.records import Change, Memory, Person
from beaver_memory.store.bounds import bounded
from beaver_memory.store.changes import visible_history
from beaver_memory.store.in_memory.tables import Database, OwnerTable, Row
from beaver_memory.store.people import mentions, path_label, person_label, ranked, tag_label
from beaver_memory.texts import cleaned, cleaned_all, folded

Condition = Callable[[Row], bool]

_WRITTEN = re.compile(r"\w+")
_GAP = "\0"

_READINGS: tuple[Callable[[str], list[str]], ...] = (
    lambda text: words_in(folded(text)),
    lambda text: _WRITTEN.findall(text.casefold()),
)


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


def condition(filters: Filters) -> Condition:
    """Return the condition for a visible memory, without its owner."""
    each = (*_columns(filters), *_nearness(filters), *_times(filters), *_labels(filters))
    return lambda row: all(holds(row) for holds in each)


def said(memory: Memory) -> datetime:
    """Return when a stored memory was said; every stored memory has such a time."""
    return cast("datetime", memory.created_at)


def _columns(filters: Filters) -> Iterator[Condition]:
    yield _among("store", filters.view.stores)
    for name, values in (("type", filters.types), ("scope", filters.scopes), ("source", filters.sources)):
        if values:
            yield _among(name, {*map(cleaned, values)})


def _among(name: str, values: Collection[str]) -> Condition:
    value = attrgetter(name)
    return lambda row: value(row.memory) in values


def _nearness(filters: Filters) -> Iterator[Condition]:
    view = filters.view
    place, session, agents = view.place, cleaned(view.session), {"", cleaned(view.agent)}
    if place is not None:
        yield lambda row: row.memory.scope == "global" or row.memory.project == place
    if session:
        yield lambda row: row.memory.scope != "session" or row.memory.session == session
    if view.agent:
        yield lambda row: row.memory.agent in agents


def _times(filters: Filters) -> Iterator[Condition]:
    then, after, before = filters.as_of or filters.view.now, filters.after, filters.before
    if not filters.lapsed:
        yield lambda row: _is_valid(row.memory, filters.view.now, then)
    if filters.as_of is not None:
        yield lambda row: said(row.memory) <= then
    if after is not None:
        yield lambda row: said(row.memory) >= after
    if before is not None:
        yield lambda row: said(row.memory) < before


def _is_valid(memory: Memory, now: datetime, then: datetime) -> bool:
    return (
        (memory.expires_at is None or memory.expires_at > now)
        and (memory.valid_from is None or memory.valid_from <= then)
        and (memory.valid_until is None or memory.valid_until > then)
    )


def _labels(filters: Filters) -> Iterator[Condition]:
    tags, people = {*map(tag_label, filters.tags)}, {*map(person_label, filters.people)}
    if tags:
        yield lambda row: tags <= row.labels
    if people:
        yield lambda row: not people.isdisjoint(row.labels)
    if filters.file:
        path = path_label(filters.file)
        yield lambda row: path in row.labels


def matching(database: Database, patterns: Sequence[Pattern], filters: Filters, limit: int) -> list[int]:
    """Return ids of visible memories that hold all patterns, newest first."""
    if not patterns or not all(pattern.words for pattern in patterns):
        return []
    found = [row.memory for row in everything(database, filters) if _holds(row.memory, patterns)]
    return [memory.id for memory in sorted(found, key=age, reverse=True)][: bounded(limit)]


def _holds(memory: Memory, patterns: Sequence[Pattern]) -> bool:
    lists = (memory.facts, memory.tags, memory.keywords, memory.related_people)
    texts = (memory.title, memory.narrative, *(each for texts in lists for each in texts))
    return all(any(_reads(text, pattern) for text in texts) for pattern in patterns)


def _reads(text: str, pattern: Pattern) -> bool:
    return any(_begun(read(text), read(pattern.text), is_prefix=pattern.is_prefix) for read in _READINGS)


def _begun(words: Sequence[str], wanted: Sequence[str], *, is_prefix: bool) -> bool:
    """Return whether words hold the wanted ones, one after the other; the last one may be a prefix."""
    end = "" if is_prefix else _GAP
    return bool(wanted) and f"{_GAP}{_GAP.join(wanted)}{end}" in f"{_GAP}{_GAP.join(words)}{_GAP}"
