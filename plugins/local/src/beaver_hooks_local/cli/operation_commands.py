"""The commands that are made from the table of operations, by the records of their requests."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import attrs
import click

from beaver_hooks_local.cli.options import (
    FILTER_OPTIONS,
    ID,
    OwnerOptions,
    asked,
    debug_option,
    filtered,
    json_option,
    user_option,
)
from beaver_hooks_local.cli.output import HEADS, one_line, plain, row, say, say_json, table
from beaver_hooks_local.cli.plugin_calls import call
from beaver_hooks_local.memory import LocalMemory
from beaver_hooks_local.plugin import Local
from beaver_hostspecs import Shell
from beaver_memory.dispatch.dispatcher import encode
from beaver_memory.filters import Filters
from beaver_memory.records import Change, Owner
from beaver_memory.runtime.memory_runtime import CapabilityCatalog
from beaver_memory.runtime.reports import HistoryReport, MemoriesReport, ProjectionReport
from beaver_memory.runtime.requests import ProjectionRequest
from beaver_memory.runtime.table import OPERATIONS, Operation

Given = dict[str, Any]
Decorator = Callable[[Any], Any]

_ENTRY = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)

NOTHING = "Nothing was found."


def operation_commands() -> Iterator[click.Command]:
    """Yield a command for each operation of the table that names one, and `capabilities`."""
    for operation in OPERATIONS.commands:
        yield _command(operation)
    yield capabilities


@click.command()
@json_option
@debug_option
@click.pass_obj
def capabilities(shell: Shell, *, as_json: bool) -> None:
    """Show which operations this memory carries out, and why one is missing."""

    async def read(plugin: Local) -> CapabilityCatalog:
        return plugin.runtime.capabilities()

    _show(call(shell, read), as_json=as_json)


def _command(operation: Operation[Any, Any]) -> click.Command:
    def run(shell: Shell, /, *, as_json: bool, **given: Any) -> None:
        def carried_out(plugin: Local) -> Awaitable[Any]:
            return plugin.runtime.carry_out(operation, _request(operation, given, plugin.memory))

        _show(call(shell, carried_out), as_json=as_json)

    run.__doc__ = _imperative(operation.request)
    function: Any = click.pass_obj(run)
    for decorate in reversed([*_parameters(operation.request), json_option, debug_option]):
        function = decorate(function)
    return click.command(name=operation.command)(function)


def _parameters(request: type) -> Iterator[Decorator]:
    """Yield the arguments and options for the fields of a request."""
    texts, fields = _texts_of(request), attrs.fields_dict(request)
    for name, field in fields.items():
        required = field.default is attrs.NOTHING
        if field.type is Filters:
            yield lambda function: filtered(function, without=fields)
        elif field.type is Owner:
            yield user_option
        elif field.type is str:
            yield click.argument(name, metavar="WORDS" if required else "[WORDS]", nargs=-1, required=required)
        elif required:
            yield click.argument(name, metavar="ID", type=ID)
        elif field.type is bool:
            yield click.option(f"--{_dashed(name)}/--no-{_dashed(name)}", name, default=field.default, help=texts[name])
        else:
            yield click.option(
                f"--{_dashed(name)}", name, type=int, default=field.default, show_default=True, help=texts[name]
            )


def _request(operation: Operation[Any, Any], given: Given, memory: LocalMemory) -> Any:
    """Return the request for the given arguments and options, at the present moment.

    Raises:
        UsageError: a value is out of the bounds of its field.
    """
    fields = attrs.fields_dict(operation.request)
    values = {name: " ".join(value) if isinstance(value, tuple) else value for name, value in given.items()}
    values = {name: values[name] for name in fields if name in values}
    narrowed = {name: value for name, value in given.items() if name in FILTER_OPTIONS and name not in fields}
    for name, field in fields.items():
        if field.type is Filters:
            which = asked(**{"user": None, "project": None} | narrowed, as_turn=operation.request is ProjectionRequest)
            values[name] = which.filters(memory)
        elif field.type is Owner:
            values[name] = OwnerOptions(user=given["user"]).here(memory).owner
    try:
        return operation.request(**values)
    except ValueError as error:
        # attrs puts the value behind a colon.
        raise click.UsageError(f"{str(error).partition(': ')[0]}.") from error


def _show(report: Any, *, as_json: bool) -> None:
    if as_json:
        say_json(encode(report))
    else:
        say(text_of(report))


def _imperative(request: type) -> str:
    """Return the first sentence of a request's docstring, with its verb as a command: `Reads` becomes `Read`."""
    verb, _, rest = str(inspect.getdoc(request)).partition("\n")[0].partition(" ")
    return f"{verb.removesuffix('s')} {rest}"


def _texts_of(request: type) -> dict[str, str]:
    """Return the texts of a request's fields, from its docstring, each as a sentence."""
    found = _ENTRY.findall(str(inspect.getdoc(request)))
    return {name: _sentence(" ".join(text.split())) for name, text in found}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def text_of(report: Any) -> str:
    """Return a report as text; of one without a form of its own, each field."""
    return _TEXTS.get(type(report), _fields)(report)


def change_lines(changes: Sequence[Change]) -> str:
    """Return the history of a memory, one line for each change: the names of its fields, and the id of a successor."""
    lines = (f"  {each.at:%Y-%m-%d %H:%M} {each.event} {', '.join(_changed(each))}" for each in changes)
    return "\n".join(line.rstrip() for line in lines)


def _changed(change: Change) -> list[str]:
    successor = change.new.get("superseded_by")
    named = {} if successor is None else {"superseded_by": f"superseded_by {successor}"}
    return [named.get(name, name) for name in sorted(change.new)]


def _memories(report: MemoriesReport) -> str:
    now = datetime.now(UTC)
    return table([HEADS, *(row(each, now) for each in report.memories)]) if report.memories else NOTHING


def _history(report: HistoryReport) -> str:
    return change_lines(report.changes) or NOTHING


def _projection(report: ProjectionReport) -> str:
    return report.system_memory_block.rstrip() or NOTHING


def _catalogue(report: CapabilityCatalog) -> str:
    rows = [[name, "yes" if each.visible else "no", each.reason] for name, each in report.operations.items()]
    facts = {name: value for name, value in attrs.asdict(report).items() if name != "operations"}
    return "\n".join([table([["operation", "available", "reason"], *rows]), *_lines(facts)])


def _fields(report: Any) -> str:
    """Return tables of the records in a report, and lines of its other fields."""
    values = {name: getattr(report, name) for name in attrs.fields_dict(type(report))}
    tables = {name: _records(each) for name, each in values.items() if _are_records(each)}
    facts = {name: each for name, each in values.items() if name not in tables and each != ()}
    return "\n".join([*tables.values(), *_lines(facts)]) or NOTHING


def _are_records(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and attrs.has(type(value[0]))


def _records(records: Sequence[Any]) -> str:
    names = [*attrs.fields_dict(type(records[0]))]
    rows = [[_cell(getattr(each, name)) for name in names] for each in records]
    return table([[name.replace("_", " ") for name in names], *rows])


def _lines(facts: Mapping[str, object]) -> list[str]:
    return [f"{name.replace('_', ' ')}: {_cell(value) or 'none'}" for name, value in facts.items()]


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
    if isinstance(value, tuple):
        return one_line(", ".join(map(str, value)))
    return "" if value is None else one_line(str(plain(value)))


_TEXTS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        MemoriesReport: _memories,
        HistoryReport: _history,
        ProjectionReport: _projection,
        CapabilityCatalog: _catalogue,
    }
)
