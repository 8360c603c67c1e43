"""Reads the front matter of a `SKILL.md`. Pure.

    ---
    name: review
    description: "How we review: kindly"
    ---
    The instructions.

Rules:

1. The first line is `---`, and so is the line that ends the front matter. Blanks after it do not matter.
2. In between: `key: value`, empty lines, and lines that start with `#`.
3. A value is taken unchanged; in double quotes as a JSON string; in single quotes with `''` for a quote.
4. `name` must be there, a word of letters, digits, `_`, `.` and `-`. `description` may be there. Both are on one line
   and given once. Other keys are ignored, with the indented lines and list items that follow them.
5. CR, CRLF and LF end a line.
"""

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

FENCE = "---"
NAME = re.compile(r"\w[\w.-]{0,63}")
KNOWN = ("name", "description")

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?")
"""The beginning of a text of several lines in YAML."""


class FrontMatterError(Exception):
    """The front matter is malformed; the text names the fault and follows the path of the file."""


def read_front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Return the known values and the text after the front matter.

    Raises:
        FrontMatterError: a rule is broken; names the line.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    # Rule 1.
    if lines[0].rstrip() != FENCE:
        raise FrontMatterError("has no front matter; begin it with a line `---`")
    ends = [number for number, line in enumerate(lines) if number and line.rstrip() == FENCE]
    if not ends:
        raise FrontMatterError("has front matter that does not end; close it with a line `---`")
    values = _values(lines[1 : ends[0]])
    if NAME.fullmatch(values.get("name", "")) is None:
        raise FrontMatterError("has no usable name; add `name: a-word` to its front matter")
    return MappingProxyType(values), "\n".join(lines[ends[0] + 1 :]).strip()


def _values(lines: Iterable[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines, 2):
        # Rule 2.
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            _check_continued(line, key, number)
            continue
        key = match[1]
        if key in KNOWN:
            if key in values:
                raise FrontMatterError(f"gives `{key}` twice (line {number})")
            values[key] = _value(match[2] or "", key, number)
    return values


def _check_continued(line: str, key: str, number: int) -> None:
    """Rule 4."""
    if key in KNOWN:
        raise FrontMatterError(f"has a `{key}` of several lines (line {number}); write it on one")
    if not key or not line.startswith((" ", "\t", "-")):
        raise FrontMatterError(f"has a line that is not `key: value` (line {number})")


def _value(text: str, key: str, number: int) -> str:
    """Rule 3."""
    text = text.strip()
    if _BLOCK.fullmatch(text):
        raise FrontMatterError(f"has a `{key}` of several lines (line {number}); write it on one")
    if text.startswith("'"):
        if re.fullmatch(r"'(?:[^']|'')*'", text):
            return text[1:-1].replace("''", "'")
    elif not text.startswith('"'):
        return text
    else:
        return _unquoted(text, key, number)
    raise _badly_quoted(key, number)


def _unquoted(text: str, key: str, number: int) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        raise _badly_quoted(key, number) from None
    return str(value)


def _badly_quoted(key: str, number: int) -> FrontMatterError:
    return FrontMatterError(f"has a `{key}` with a quote that is not closed (line {number})")
