"""Turns filters into SQL conditions; every question to the store uses them, so no result is filtered afterwards.

They are built in code, not in a `.sql` file: each filter that is given adds its condition, so that SQLite plans each
statement for the conditions that it has.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.store.people import path_label, person_label, tag_label
from beaver_memory.texts import cleaned, micros

_HAS_ONE = (
    "EXISTS (SELECT 1 FROM observation_labels AS x"
    " WHERE x.tenant = o.tenant AND x.owner = o.owner AND x.label IN ({labels})"
    " AND x.created_at = o.created_at AND x.memory = o.id)"
)


@attrs.frozen(kw_only=True)
class Conditions:
    """Conditions on a memory, without its owner.

    Attributes:
        sql: conditions on `observations AS o`.
        params: the values of its placeholders.
        stores: the visible stores.
        ways: labels of which the memory must have at least one, if there are any: with one of them a question can begin
            at the side table.
    """

    sql: str
    params: tuple[Any, ...]
    stores: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()


def conditions(filters: Filters) -> Conditions:
    """Return the conditions for a visible memory, without its owner."""
    parts = [("o.deleted_at IS NULL", ()), *_columns(filters), *_nearness(filters), *_times(filters), *_labels(filters)]
    return Conditions(
        sql=" AND ".join(sql for sql, _ in parts),
        params=tuple(value for _, values in parts for value in values),
        stores=tuple(str(each) for each in filters.view.stores),
        ways=_ways(filters),
    )


_Part = tuple[str, tuple[Any, ...]]


def _columns(filters: Filters) -> list[_Part]:
    parts = [("o.store", tuple(str(each) for each in filters.view.stores))]
    parts += [("o.type", filters.types), ("o.scope", filters.scopes), ("o.source", filters.sources)]
    # Without a store no memory is visible; the others are no condition when they are empty.
    return [_among(column, values) for column, values in parts if values or column == "o.store"]


def _among(column: str, values: Sequence[str]) -> _Part:
    return f"{column} IN ({marks(len(values))})", tuple(map(cleaned, values))


def marks(count: int) -> str:
    """Return `count` placeholders."""
    return ",".join("?" * count)


def _nearness(filters: Filters) -> list[_Part]:
    parts: list[_Part] = []
    if filters.view.place is not None:
        parts.append(("(o.scope = 'global' OR o.project = ?)", (filters.view.place,)))
    if filters.view.session:
        parts.append(("(o.scope <> 'session' OR o.session = ?)", (cleaned(filters.view.session),)))
    if filters.view.agent:
        parts.append(("o.agent IN ('', ?)", (cleaned(filters.view.agent),)))
    return parts


def _times(filters: Filters) -> list[_Part]:
    then = micros(filters.as_of or filters.view.now)
    parts: list[_Part] = []
    if not filters.lapsed:
        parts += [
            ("(o.expires_at IS NULL OR o.expires_at > ?)", (micros(filters.view.now),)),
            ("(o.valid_from IS NULL OR o.valid_from <= ?)", (then,)),
            ("(o.valid_until IS NULL OR o.valid_until > ?)", (then,)),
        ]
    if filters.as_of is not None:
        parts.append(("o.created_at <= ?", (then,)))
    if filters.after is not None:
        parts.append(("o.created_at >= ?", (micros(filters.after),)))
    if filters.before is not None:
        parts.append(("o.created_at < ?", (micros(filters.before),)))
    return parts


def _labels(filters: Filters) -> list[_Part]:
    wanted: list[tuple[str, ...]] = [(tag_label(tag),) for tag in filters.tags]
    if filters.people:
        wanted.append(tuple(map(person_label, filters.people)))
    if filters.file:
        wanted.append((path_label(filters.file),))
    return [(_has_one(len(labels)), labels) for labels in wanted]


def _has_one(count: int) -> str:
    return _HAS_ONE.format(labels=marks(count))


def _ways(filters: Filters) -> tuple[str, ...]:
    if filters.tags:
        return (tag_label(filters.tags[0]),)
    if filters.file:
        return (path_label(filters.file),)
    return tuple(dict.fromkeys(map(person_label, filters.people)))
