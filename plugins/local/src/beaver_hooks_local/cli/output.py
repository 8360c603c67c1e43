"""The output of commands: memories as text that is safe on a terminal, and records as JSON."""

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs
import click

from beaver_hostspecs.neutralising import neutralise
from beaver_memory.records import Memory

WIDTH = 80
LEAST = 24
"""The smallest width of the last column of a table, in characters."""


def say(text: str, *, err: bool = False) -> None:
    """Print a text in a form that is safe on any terminal, in the characters that its encoding has."""
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    click.echo(neutralise(text).encode(encoding, "replace").decode(encoding), err=err)


def say_json(value: object) -> None:
    """Print one JSON object."""
    click.echo(line_of(value))


def line_of(value: object) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=True)


def record(memory: Memory) -> dict[str, Any]:
    """Return all of a memory as plain data."""
    return {name: plain(value) for name, value in attrs.asdict(memory).items()}


def plain(value: object) -> Any:
    """Return a value as JSON types."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun if number == 1 else f'{noun[:-1]}ies' if noun.endswith('y') else f'{noun}s'}"


def row(memory: Memory, now: datetime) -> list[str]:
    """Return a memory as a row: id, day, store, type with current marks, title."""
    when = f"{memory.created_at.astimezone(UTC):%Y-%m-%d}" if memory.created_at else ""
    by = "" if memory.superseded_by is None else f" by {memory.superseded_by}"
    marks = {
        "pinned": memory.pinned,
        "expired": memory.expires_at is not None and memory.expires_at <= now,
        f"superseded{by}": memory.valid_until is not None and memory.valid_until <= now,
    }
    type_ = one_line(", ".join([memory.type, *(name for name, holds in marks.items() if holds)]))
    return [str(memory.id), when, memory.store.value, type_, title(memory)]


HEADS = ["id", "when", "store", "type", "memory"]


def title(memory: Memory) -> str:
    """Return the summary or the title of a memory in one line, however long."""
    return one_line(memory.summary or memory.title)


def one_line(text: str) -> str:
    """Return a text without line ends and invisible characters."""
    return " ".join(neutralise(text).split())


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows in columns; the first row holds the heads.

    On a terminal the last column is wrapped; in a pipe each row is one line, however long.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    before = sum(widths) + 2 * len(widths)
    room = max(LEAST, shutil.get_terminal_size((WIDTH, 24)).columns - before) if sys.stdout.isatty() else None
    lines = []
    for *cells, last in rows:
        first, *more = [last] if room is None else textwrap.wrap(last, room) or [""]
        lines.append("  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), first]))
        lines += [" " * before + each for each in more]
    return "\n".join(line.rstrip() for line in lines)


def whole(memory: Memory) -> str:
    """Return all of a memory as text."""
    facts = {name: value for name, value in record(memory).items() if name not in _AS_TEXT and value not in _NOTHING}
    owner = memory.owner.user or "everybody"
    lines = [f"[{memory.id}] {one_line(memory.title)}", *(neutralise(memory.narrative).splitlines())]
    lines += [f"- {one_line(fact)}" for fact in memory.facts]
    lines += [f"  {name}: {_shown(value)}" for name, value in {"owner": owner, **facts}.items()]
    return "\n".join(lines)


_AS_TEXT = frozenset({"id", "title", "narrative", "facts", "owner", "hash"})
_NOTHING: tuple[object, ...] = (None, "", [], False)


def _shown(value: object) -> str:
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value))
