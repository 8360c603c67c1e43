"""The reports of operations as text for a terminal. Pure but for the present moment."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import attrs

from beaver_hooks_local.cli.output import HEADS, one_line, plain, row, table
from beaver_memory.records import Change
from beaver_memory.runtime.capabilities import CapabilityCatalog
from beaver_memory.runtime.reports import HistoryReport, MemoriesReport, ProjectionReport

NOTHING = "Nothing was found."


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
