"""The filters in a request: they narrow what its source may see, and never widen it. Pure."""

from datetime import datetime
from typing import Any

import attrs

from beaver_memory.filters import Filters
from beaver_memory.records import Scope, Store


@attrs.frozen(kw_only=True)
class Narrowing:
    """The fields of `visible` and of `own` in a request: they narrow what the source may see, and never widen it.

    `as_of` goes back to what held at a time, with memories that are superseded by now. A later time than the present is
    the present: what waits for approval, and what does not hold yet, stays hidden.
    """

    stores: tuple[Store, ...] = tuple(Store)
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    file: str = ""
    scopes: tuple[Scope, ...] = ()
    session: str = ""
    agent: str = ""
    sources: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    as_of: datetime | None = None
    lapsed: bool = False

    def applied(self, base: Filters) -> Filters:
        """Return filters for the memories that both `base` and this narrowing show."""
        given: dict[str, Any] = {
            "tags": tuple({*base.tags, *self.tags}),
            "file": self.file or base.file,
            "after": max((each for each in (base.after, self.after) if each is not None), default=None),
            "before": min((each for each in (base.before, self.before) if each is not None), default=None),
            "lapsed": base.lapsed and self.lapsed,
        }
        given |= {name: _both(getattr(base, name), getattr(self, name)) for name in _ANY_OF}
        near = {name: getattr(base.view, name) or getattr(self, name) for name in _ONE}
        given["as_of"] = base.as_of or (self.as_of and min(self.as_of, base.view.now))
        apart = any(getattr(base, name) and not given[name] for name in _ANY_OF) or not _within(self.file, base.file)
        stores = tuple({*base.view.stores} & {*self.stores})
        view = attrs.evolve(base.view, **near, stores=stores, owners=() if apart else base.view.owners)
        return attrs.evolve(base, view=view, **given)


_ANY_OF = ("types", "people", "scopes", "sources")
"""Conditions that a memory fits by one of their values; an empty tuple is no condition."""

_ONE = ("session", "agent")
"""Conditions with one value; that of the source holds."""


def _both(base: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in given if each in base) if base and given else base or given


def _within(file: str, folder: str) -> bool:
    return not (file and folder) or file == folder or file.startswith(f"{folder.rstrip('/')}/")
