"""Filters of visible memories, applied inside every query and every index, never after ranking."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import attrs
from attrs import field

from beaver_memory.records import Owner, Scope, Store


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it must be a list of texts, not one text")
    return tuple(values)


def _stores(values: Iterable[Store | str]) -> tuple[Store, ...]:
    return tuple(sorted({Store(value) for value in values}))


def _owners(values: Iterable[Owner]) -> tuple[Owner, ...]:
    owners = tuple(dict.fromkeys(values))
    if not all(isinstance(owner, Owner) for owner in owners):
        raise TypeError("owners must be Owner records")
    if len({owner.tenant for owner in owners}) > 1:
        raise ValueError("owners must be of one tenant: an id names one memory within a tenant")
    return owners


def _aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


@attrs.frozen(kw_only=True)
class Filters:
    """Conditions for visible memories. An empty tuple means no condition, except for `owners` and `stores`.

    Attributes:
        owners: the owners of the memories, all of one tenant; without one no memory is visible.
        stores: the visible stores; without one no memory is visible.
        types: the memory is of one of these types.
        tags: it has all of these tags.
        people: it is related to one of these people.
        file: it is related to this path, or to one below it.
        scopes: it holds in one of these scopes.
        project: memories of other projects are left out, unless they are global.
        session: memories that hold in another session only are left out.
        agent: memories of other agents are left out.
        sources: one of these wrote it.
        after: it was said at or after.
        before: it was said before.
        as_of: only memories that were true at this time, and known by then; by default those that are true now.
        lapsed: memories that are expired, superseded or not yet true are visible too, so that their owner can list or
            forget them.
        now: the moment at which expiry is judged.
    """

    owners: tuple[Owner, ...] = field(default=(Owner(),), converter=_owners)
    stores: tuple[Store, ...] = field(default=tuple(sorted(Store)), converter=_stores)
    types: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    people: tuple[str, ...] = field(default=(), converter=_texts)
    file: str = ""
    scopes: tuple[Scope, ...] = field(default=(), converter=_texts)
    project: str = ""
    session: str = ""
    agent: str = ""
    sources: tuple[str, ...] = field(default=(), converter=_texts)
    after: datetime | None = field(default=None, validator=_aware)
    before: datetime | None = field(default=None, validator=_aware)
    as_of: datetime | None = field(default=None, validator=_aware)
    lapsed: bool = False
    now: datetime = field(validator=_aware)

    @property
    def tenant(self) -> str:
        """The tenant of the owners; empty without an owner."""
        return self.owners[0].tenant if self.owners else ""
