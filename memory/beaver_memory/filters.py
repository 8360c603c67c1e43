"""Filters of visible memories, applied inside every query and every index, never after ranking."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_memory.records import Owner, Scope
from beaver_memory.views import ALL_PROJECTS, View, aware


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("it must be a list of texts, not one text")
    return tuple(values)


@attrs.frozen(kw_only=True)
class Filters:
    """A view, and conditions for the memories that it shows. An empty tuple means no condition.

    Attributes:
        view: of the caller.
        types: the memory is of one of these types.
        tags: it has all of these tags.
        people: it is related to one of these people.
        file: it is related to this path, or to one below it.
        scopes: it holds in one of these scopes.
        sources: one of these wrote it.
        after: it was said at or after.
        before: it was said before.
        as_of: only memories that were true at this time, and known by then; by default those that are true now.
        lapsed: memories that are expired, superseded or not yet true are visible too, so that their owner can list or
            forget them.
    """

    view: View = field(validator=instance_of(View))
    types: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    people: tuple[str, ...] = field(default=(), converter=_texts)
    file: str = ""
    scopes: tuple[Scope, ...] = field(default=(), converter=_texts)
    sources: tuple[str, ...] = field(default=(), converter=_texts)
    after: datetime | None = field(default=None, validator=aware)
    before: datetime | None = field(default=None, validator=aware)
    as_of: datetime | None = field(default=None, validator=aware)
    lapsed: bool = False

    def within(self, **fields: Any) -> Self:
        """Return the same conditions for a view with other values of fields."""
        return attrs.evolve(self, view=attrs.evolve(self.view, **fields))


def every_memory(owners: Iterable[Owner], now: datetime) -> Filters:
    """Return the filters for all memories of owners, whatever their projects and validity."""
    return Filters(view=View(owners=owners, project=ALL_PROJECTS, now=now), lapsed=True)
