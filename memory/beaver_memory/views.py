"""Views: who sees which memories. A view is made once, where a caller comes in, from its trust and its identity."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal

import attrs
from attrs import field
from attrs.validators import instance_of

from beaver_memory.records import Owner, Store
from beaver_memory.texts import cleaned


class Projects(Enum):
    """Stands for projects that no single name means."""

    ALL = "all projects"


ALL_PROJECTS: Final = Projects.ALL
"""Every project, and what belongs to none: for commands of an owner alone."""

Project = str | Literal[Projects.ALL] | None
"""The name of a project; `None` is outside of any project."""


def stored(project: Project) -> str | None:
    """Return a project as stores name it: an empty text outside of any, and `None` for all projects."""
    return None if project is ALL_PROJECTS else cleaned(project or "")


def tenant_within(own: str, given: str) -> str:
    """Return the tenant that a caller names, as a process with a tenant of its own names it."""
    return f"{own}/{given}" if own and given else own or given


def tenant_without(own: str, name: str) -> str:
    """Return the tenant that `tenant_within` has named, as its caller names it."""
    return name.removeprefix(own).removeprefix("/") if own else name


def aware(_: object, attribute: "attrs.Attribute[Any]", value: datetime | None) -> None:
    """Refuse a moment without a time zone."""
    if value is not None and (not isinstance(value, datetime) or value.utcoffset() is None):
        raise ValueError(f"{attribute.name} must be a datetime with a time zone")


def _stores(values: Iterable[Store | str]) -> tuple[Store, ...]:
    return tuple(sorted({Store(value) for value in values}))


def _owners(values: Iterable[Owner]) -> tuple[Owner, ...]:
    owners = tuple(dict.fromkeys(values))
    if not all(isinstance(owner, Owner) for owner in owners):
        raise TypeError("owners must be Owner records")
    if len({owner.tenant for owner in owners}) > 1:
        raise ValueError("owners must be of one tenant: an id names one memory within a tenant")
    return owners


@attrs.frozen(kw_only=True)
class View:
    """Who sees which memories, and when.

    Attributes:
        owners: the owners of the memories, all of one tenant; without one no memory is visible.
        owner: the owner whose memories the caller writes; the first one unless given.
        stores: the visible stores; without one no memory is visible.
        project: memories of other projects are left out, unless they are global.
        session: memories that hold in another session only are left out; with an empty text, none.
        agent: memories of other agents are left out; with an empty text, none.
        now: the moment at which expiry is judged.
    """

    owners: tuple[Owner, ...] = field(default=(Owner(),), converter=_owners)
    owner: Owner = field(default=attrs.Factory(lambda self: next(iter(self.owners), Owner()), takes_self=True))
    stores: tuple[Store, ...] = field(default=tuple(sorted(Store)), converter=_stores)
    project: Project = field(default=None)
    session: str = field(default="", validator=instance_of(str))
    agent: str = field(default="", validator=instance_of(str))
    now: datetime = field(validator=aware)

    @project.validator
    def _is_a_name(self, _: object, value: Project) -> None:
        if value == "" or not isinstance(value, str | Projects | None):
            raise ValueError("project must be a name, `None` or `ALL_PROJECTS`")

    @property
    def place(self) -> str | None:
        """The project as stores name it; see `stored`."""
        return stored(self.project)

    @property
    def tenant(self) -> str:
        """The tenant of the owners; empty without an owner."""
        return self.owners[0].tenant if self.owners else ""


@attrs.frozen
class Reach:
    """The memories and waiting turns that a process works on by itself.

    Attributes:
        tenant: their tenant; `None` for each tenant of the database.
        project: their project; global memories belong to each.
    """

    tenant: str | None = ""
    project: Project = None


EVERYTHING: Final = Reach(None, ALL_PROJECTS)
"""All of a database that belongs to its process alone."""


class Reaches:
    """The parts of a database that a process works on by itself: those that it serves. Thread-safe.

    Args:
        own: the parts that it begins with.
    """

    def __init__(self, *own: Reach) -> None:
        self._all = own

    def __iter__(self) -> Iterator[Reach]:
        return iter(self._all)

    def add(self, tenant: str, project: Project) -> None:
        """Add a part that is served. A caller who sees all projects works for none of them."""
        if EVERYTHING not in self._all and project is not ALL_PROJECTS and Reach(tenant, project) not in self._all:
            self._all = (*self._all, Reach(tenant, project))
