"""Text formats of the commands: counts, times, tables, wrapped lines."""

import json
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

LEAST_TEXT = 16
"""The least characters of a table's last column, even on a narrow terminal."""

WIDTH = 80


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, for example `1 session` or `2,000 sessions`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def moment(at: datetime, *, seconds: bool = True) -> str:
    """Return a time for people, in UTC; the caller adds the zone."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def cut(text: str, width: int) -> str:
    """Return `text`, cut to `width` characters if it is longer."""
    return text if len(text) <= width else f"{text[: width - 1]}\u2026"


def filled(text: str, *, indent: str = "", width: int = WIDTH) -> str:
    """Return `text` in lines of at most `width` characters, indented after the first. No word is cut."""
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], *, widest: int = 32) -> str:
    """Return rows in columns; the first row is the header.

    Args:
        rows: the cells. On a terminal the last column is wrapped; in a pipe each row is one line of any length.
        widest: the widest column; a longer cell pushes the rest of its own row.
    """
    widths = [min(widest, max(map(len, column))) for column in zip(*rows, strict=True)][:-1]
    room, lines = terminal_width(), []
    for *cells, last in rows:
        line = "".join(cell.ljust(width) + "  " for cell, width in zip(cells, widths, strict=True))
        wrapped = [last] if room is None else textwrap.wrap(last, max(LEAST_TEXT, room - len(line)))
        lines += [(line + first).rstrip() for first in wrapped[:1] or [""]]
        lines += [" " * (sum(widths) + 2 * len(widths)) + each for each in wrapped[1:]]
    return "\n".join(lines)


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout, or `None`."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else None


def facts_text(facts: Mapping[str, object]) -> str:
    """Return facts as `name=value`, separated by spaces; a value with spaces in it is quoted."""
    return " ".join(f"{name}={_value(value)}" for name, value in facts.items())


def _value(value: object) -> str:
    plain = value if isinstance(value, str) else json.dumps(value)
    return plain if plain and not any(map(str.isspace, plain)) else json.dumps(plain, ensure_ascii=False)
