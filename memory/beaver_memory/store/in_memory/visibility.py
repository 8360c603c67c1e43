"""Turns filters into a condition on rows; every question to the store uses it, so no result is filtered afterwards."""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from operator import attrgetter
from typing import cast

from beaver_memory.filters import Filters
from beaver_memory.records import Memory
from beaver_memory.store.in_memory.tables import Row
from beaver_memory.store.labels import path_label, person_label, tag_label
from beaver_memory.texts import cleaned

Condition = Callable[[Row], bool]


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
