"""Turns filters into SQL conditions; every question to the store uses them, so no result is filtered afterwards.

They are built in code, not in a `.sql` file: each filter that is given adds its condition, so that PostgreSQL
plans each statement for the conditions that it has.
"""

from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Store
from beaver_memory.store.people import path_label, person_label, tag_label
from beaver_memory.store.postgres.owners import OwnerNumbers
from beaver_memory.texts import cleaned, micros


@attrs.frozen(kw_only=True)
class Conditions:
    """Conditions on a memory, without its tenant and owner.

    Attributes:
        sql: conditions on `observations AS o`.
        of_live: the same for a memory that is known to be live. It fits no partial index: before PostgreSQL has
            statistics of a table, it takes such an index for the best.
        params: the values of its placeholders, by name.
    """

    sql: str
    of_live: str
    params: dict[str, Any]


def conditions(filters: Filters) -> Conditions:
    """Return the conditions for a visible memory, without its tenant and owner."""
    parts = _columns(filters) | _nearness(filters) | _times(filters) | _labels(filters)
    return Conditions(
        sql=" AND ".join(["o.deleted_at IS NULL", *parts]),
        of_live=" AND ".join(parts),
        params={name: value for each in parts.values() for name, value in each.items()},
    )


_Parts = dict[str, dict[str, Any]]


def _columns(filters: Filters) -> _Parts:
    values = {"type": filters.types, "scope": filters.scopes, "source": filters.sources}
    # Without a store no memory is visible; the others are no condition when they are empty.
    given = {"store": tuple(map(str, filters.view.stores))} | {name: each for name, each in values.items() if each}
    return {f"o.{name} = ANY(%({name}s)s)": {f"{name}s": [*map(cleaned, each)]} for name, each in given.items()}


def _nearness(filters: Filters) -> _Parts:
    parts: _Parts = {}
    if filters.view.place is not None:
        parts["(o.scope = 'global' OR o.project = %(project)s)"] = {"project": filters.view.place}
    if filters.view.session:
        parts["(o.scope <> 'session' OR o.session = %(session)s)"] = {"session": cleaned(filters.view.session)}
    if filters.view.agent:
        parts["o.agent IN ('', %(agent)s)"] = {"agent": cleaned(filters.view.agent)}
    return parts


def _times(filters: Filters) -> _Parts:
    then = micros(filters.as_of or filters.view.now)
    parts: _Parts = {}
    if not filters.lapsed:
        parts["(o.expires_at IS NULL OR o.expires_at > %(now)s)"] = {"now": micros(filters.view.now)}
        parts["(o.valid_from IS NULL OR o.valid_from <= %(then)s)"] = {"then": then}
        parts["(o.valid_until IS NULL OR o.valid_until > %(then)s)"] = {"then": then}
    if filters.as_of is not None:
        parts["o.created_at <= %(then)s"] = {"then": then}
    if filters.after is not None:
        parts["o.created_at >= %(after)s"] = {"after": micros(filters.after)}
    if filters.before is not None:
        parts["o.created_at < %(before)s"] = {"before": micros(filters.before)}
    return parts


def _labels(filters: Filters) -> _Parts:
    every = [*map(tag_label, filters.tags), *([path_label(filters.file)] if filters.file else [])]
    parts: _Parts = {}
    if every:
        parts["o.labels @> %(labels)s::text[]"] = {"labels": every}
    if filters.people:
        parts["o.labels && %(people)s::text[]"] = {"people": [*map(person_label, filters.people)]}
    return parts


@attrs.frozen(kw_only=True)
class Seen:
    """What a question may see.

    Attributes:
        tenant: the number of the tenant, 0 for one without memories.
        owners: the visible owners by number; none if the filters allow no store.
        which: the conditions for a visible memory.
        every_store: whether all stores are visible.
    """

    tenant: int
    owners: dict[int, Owner]
    which: Conditions
    every_store: bool = False

    def params(self, **more: Any) -> dict[str, Any]:
        """Return the values for a statement with the conditions."""
        return self.which.params | {"tenant": self.tenant, "owners": [*self.owners]} | more


def seen(connection: Any, book: OwnerNumbers, filters: Filters) -> Seen:
    """Return what filters allow to see."""
    owners = filters.view.owners if filters.view.stores else ()
    tenant = book.tenant(connection, filters.view.tenant) if owners else 0
    keys, every = book.keys(connection, owners), {*filters.view.stores} == {*Store}
    return Seen(tenant=tenant, owners=keys, which=conditions(filters), every_store=every)
