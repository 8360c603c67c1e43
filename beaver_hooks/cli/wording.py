"""How commands say things: counts, moments, lines that fit. Pure."""

import json
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

LEAST_TEXT = 16
"""Characters that the last column of a table has at least, however narrow the terminal is."""

WIDTH = 80


def counted(number: float, noun: str) -> str:
    """Return a number with what it counts, for example `1 session` or `2,000 sessions`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def moment(at: datetime, *, seconds: bool = True) -> str:
    """Return a time as people read it, in UTC; what says so stands beside it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")


def cut(text: str, width: int) -> str:
    """Return `text`, cut to `width` characters where it is longer."""
    return text if len(text) <= width else f"{text[: width - 1]}\u2026"


def filled(text: str, *, indent: str = "", width: int = WIDTH) -> str:
    """Return `text` in lines of at most `width` characters, those after the first indented. No word is cut."""
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(rows: Sequence[Sequence[str]], *, widest: int = 32) -> str:
    """Return rows in columns, the first row being the heads.

    Args:
        rows: the cells. The last column is cut so that a row fits on the terminal.
        widest: how wide a column may be; what is longer pushes the rest of its own row.
    """
    widths = [min(widest, max(map(len, column))) for column in zip(*rows, strict=True)][:-1]
    lines = []
    for *cells, last in rows:
        line = "".join(cell.ljust(width) + "  " for cell, width in zip(cells, widths, strict=True))
        lines.append((line + cut(last, max(LEAST_TEXT, terminal_width() - len(line)))).rstrip())
    return "\n".join(lines)


def terminal_width() -> int:
    """Return the columns of the terminal; where there is none, those that suffice."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def facts_text(facts: Mapping[str, object]) -> str:
    """Return facts as `name=value`, separated by spaces; a value with spaces in it is quoted."""
    return " ".join(f"{name}={_value(value)}" for name, value in facts.items())


def _value(value: object) -> str:
    plain = value if isinstance(value, str) else json.dumps(value)
    return plain if plain and not any(map(str.isspace, plain)) else json.dumps(plain, ensure_ascii=False)
