"""The options that several commands take, and their meaning."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, time
from types import MappingProxyType
from typing import Any, TypeVar

import attrs
import click

from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.visibility import Visibility
from beaver_hostspecs import CommandContext, Scope, Trust
from beaver_memory.filters import Filters
from beaver_memory.records import LONGEST_TITLE, Store
from beaver_memory.views import ALL_PROJECTS, EVERYTHING

Function = TypeVar("Function", bound=Callable[..., Any])

LONGEST_ID = 19
"""The number of digits from which a number is no id."""

STORES = click.Choice([store.value for store in Store])


class Moment(click.ParamType[datetime]):
    """A day, or a moment; without a zone it is in UTC."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the moment; a day means its beginning."""
        try:
            found = datetime.combine(date.fromisoformat(value), time())
        except ValueError:
            try:
                found = datetime.fromisoformat(value)
            except ValueError:
                self.fail("Give a date or a date and time, for example 2026-11-18 or 2026-11-18T09:30.", param, ctx)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found


class Word(click.ParamType[str]):
    """A text of a length that a label may have."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word."""
        if not 0 < len(value.strip()) <= LONGEST_TITLE:
            self.fail(f"It must have 1 to {LONGEST_TITLE} characters.", param, ctx)
        return str(value)


class Id(click.ParamType[int]):
    """The id of a memory."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the id."""
        text = str(value)
        if not (text.isascii() and text.isdecimal() and len(text) < LONGEST_ID and int(text)):
            self.fail("An id is a whole number; `beaver memory list` shows the ids.", param, ctx)
        return int(text)


MOMENT, WORD, ID = Moment(), Word(), Id()

user_option = click.option(
    "--user", metavar="ID", type=WORD, help="The user whose memories are shown, with those without a user."
)
project_option = click.option(
    "--project", metavar="NAME", type=WORD, help="The project to look from; memories of other projects are hidden."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
debug_option = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")


def limit_option(default: int, most: int = 1_000) -> Callable[[Function], Function]:
    """Return the option for the most entries to show."""
    return click.option(
        "--limit", type=click.IntRange(1, most), default=default, show_default=True, help="The most to show."
    )


@attrs.frozen(kw_only=True)
class OwnerOptions:
    """The memories that a command is about.

    Attributes:
        user: their owner.
        project: the project from which they are seen.
        tenant: the tenant of that owner.
        narrowed: the options that narrow them, by the names that `Filters` has for them.
        as_turn: they are seen as a turn sees them: from one project, also where the command line sees all.
    """

    user: str | None = None
    project: str | None = None
    tenant: str | None = None
    narrowed: dict[str, Any] = attrs.field(factory=dict)
    as_turn: bool = False

    def here(self, memory: LocalMemory) -> Visibility:
        """Return the sight of the user at the terminal, at full trust, in one project or outside of any."""
        given = {"project": self.project, "tenant": self.tenant}
        scope = Scope(**{name: value for name, value in given.items() if value})
        return Visibility.of_command(CommandContext(user=self.user, scope=scope, trust=Trust.FULL), memory.home)

    def sight(self, memory: LocalMemory) -> Visibility:
        """Return the same in all projects, unless one is named or others may use the database."""
        is_narrow = self.as_turn or self.project is not None
        is_whole = not is_narrow and memory.operations.location.reach == EVERYTHING
        return attrs.evolve(self.here(memory), project=ALL_PROJECTS) if is_whole else self.here(memory)

    def filters(self, memory: LocalMemory) -> Filters:
        """Return the filters at the present moment."""
        return self.sight(memory).filters(memory.clock.now(), **self.narrowed)

    def in_all_projects(self, memory: LocalMemory) -> Filters:
        """Return the same filters over all projects of the database."""
        filters = self.filters(memory)
        return attrs.evolve(filters, view=attrs.evolve(filters.view, project=ALL_PROJECTS))

    def own(self, memory: LocalMemory, *, lapsed: bool = False) -> Filters:
        """Return filters for memories that the command may change, or with `lapsed` forget."""
        return self.sight(memory).own(memory.clock.now(), lapsed=lapsed)


FILTER_OPTIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "user": user_option,
        "project": project_option,
        "stores": click.option(
            "--store", "stores", type=STORES, multiple=True, help="Only this store; may be repeated."
        ),
        "types": click.option("--type", "types", type=WORD, multiple=True, help="Only this type; may be repeated."),
        "tags": click.option(
            "--tag", "tags", type=WORD, multiple=True, help="Only with this tag; repeated, with all of them."
        ),
        "people": click.option(
            "--person", "people", type=WORD, multiple=True, help="Only about this person; repeated, about any of them."
        ),
        "file": click.option("--file", metavar="PATH", type=WORD, help="Only about this path or a path below it."),
        "after": click.option("--after", type=MOMENT, help="Only what was said at this time or later."),
        "before": click.option("--before", type=MOMENT, help="Only what was said before this time."),
        "as_of": click.option("--as-of", type=MOMENT, help="Only what was known and true at this time."),
        "lapsed": click.option(
            "--all", "lapsed", is_flag=True, help="Also what is expired, superseded or not valid yet."
        ),
    }
)
"""The options that select memories, by the names of their values."""


def filtered(function: Function, *, without: Collection[str] = ()) -> Function:
    """Give a command the options that select memories, but for some."""
    for name, option in reversed([*FILTER_OPTIONS.items()]):
        if name not in without:
            function = option(function)
    return function


def asked(*, user: str | None, project: str | None, as_turn: bool = False, **narrowing: Any) -> OwnerOptions:
    """Return the memories that the options of `filtered` select."""
    narrowed = {name: value for name, value in narrowing.items() if value}
    return OwnerOptions(user=user, project=project, narrowed=narrowed, as_turn=as_turn)
