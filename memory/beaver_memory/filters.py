"""What a search may look at at all: applied inside every query and every index, never after ranking."""

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
    return owners


def _aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


@attrs.frozen(kw_only=True)
class Filters:
    """Which memories may be seen. An empty tuple means that there is no such condition, but for `owners` and `stores`.

    Attributes:
        owners: whose memories; nothing is seen without one.
        stores: which stores may be seen; nothing is seen without one.
        types: the memory is of one of these types.
        tags: it has all of these tags.
        people: it is related to one of these people.
        file: it is related to this path, or to one below it.
        scopes: it holds in one of these scopes.
        project: memories of other projects are left out, unless they hold everywhere.
        session: memories that hold in another session only are left out.
        agent: memories of other agents are left out.
        sources: it was written by one of these.
        after: it was said at or after.
        before: it was said before.
        as_of: what was true then, and known by then; else what is true now.
        lapsed: what is expired, superseded or not yet true is seen too: its owner may want to look at it, or forget it.
        now: the moment that expiry is judged at.
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
