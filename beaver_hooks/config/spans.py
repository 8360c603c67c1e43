"""Edits JSON text and leaves all other text unchanged: indentation, order of keys, line ends.

`set_value` and `unset_value` return a new text that differs in one span. The text must be JSON without a key given
twice (see `parse_json`), its top level an object.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
INDENT = "  "
"""The indent of a level if the text does not show another one."""


@attrs.frozen(kw_only=True)
class Member:
    """One member of an object in a text.

    Attributes:
        key: its key.
        start: the position of the key.
        colon: the text between the key and the value.
        value: its value.
    """

    key: str
    start: int
    colon: str
    value: "Span"


@attrs.frozen(kw_only=True)
class Span:
    """A value in a text.

    Attributes:
        start: its first position.
        end: the position after it.
        members: the members of an object; `None` for every other value.
    """

    start: int
    end: int
    members: tuple[Member, ...] | None = None

    def member(self, key: str) -> Member | None:
        """Return the member of an object, or `None`."""
        return next((each for each in self.members or () if each.key == key), None)


def set_value(text: str, path: Sequence[str], value: object) -> str:
    """Return `text` with `value` at `path`; missing objects on the way are made."""
    span, missing = find(text, path)
    if missing and span.members is not None:
        return _inserted(text, span, missing[0], _nested(missing[1:], value))
    written = _written(text, span.start, _nested(missing, value), like=text[span.start : span.end])
    return text[: span.start] + written + text[span.end :]


def unset_value(text: str, path: Sequence[str]) -> str:
    """Return `text` without the member at `path`, which must exist, and without its comma."""
    holder, _ = find(text, path[:-1])
    members = holder.members or ()
    number = [each.key for each in members].index(path[-1])
    if len(members) == 1:
        return text[: holder.start] + "{}" + text[holder.end :]
    if number + 1 < len(members):
        return text[: members[number].start] + text[members[number + 1].start :]
    return text[: members[number - 1].value.end] + text[members[number].value.end :]


def find(text: str, path: Sequence[str]) -> tuple[Span, Sequence[str]]:
    """Return the value at `path`, or the last existing one on the way, and the rest of the path."""
    span = _span(text, _after_blanks(text, 0))
    for number, key in enumerate(path):
        member = span.member(key)
        if member is None:
            return span, path[number:]
        span = member.value
    return span, ()


def _span(text: str, at: int) -> Span:
    if text[at] != "{":
        return Span(start=at, end=_DECODER.raw_decode(text, at)[1])
    members = tuple(_members(text, at))
    last = members[-1].value.end if members else at + 1
    return Span(start=at, end=_after_blanks(text, last) + 1, members=members)


def _members(text: str, at: int) -> Iterator[Member]:
    at = _after_blanks(text, at + 1)
    while text[at] != "}":
        key, end = _DECODER.raw_decode(text, at)
        start = _after_blanks(text, _after_blanks(text, end) + 1)
        value = _span(text, start)
        yield Member(key=key, start=at, colon=text[end:start], value=value)
        at = _after_blanks(text, value.end)
        at = _after_blanks(text, at + 1) if text[at] == "," else at


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found is not None else at


def _nested(keys: Sequence[str], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _inserted(text: str, holder: Span, key: str, value: object) -> str:
    """Return `text` with another member at the end of an object, written like the one before it."""
    members = holder.members or ()
    if not members:
        written = _written(text, holder.start, {key: value}, like="\n" if _has_lines(text) else "")
        return text[: holder.start] + written + text[holder.end :]
    last = members[-1]
    before = members[-2].value.end if len(members) > 1 else holder.start + 1
    lead = re.sub(r"^[ \t\r\n]*,", "", text[before : last.start])
    if len(members) == 1 and not lead and last.colon.endswith(" "):
        lead = " "
    head = f",{lead}{json.dumps(key, ensure_ascii=False)}{last.colon}"
    return text[: last.value.end] + head + _written(text, last.start, value) + text[last.value.end :]


def _written(text: str, at: int, value: object, like: str | None = None) -> str:
    """Return `value` as JSON for the line of `at`; on several lines if `like`, or else the whole text, has several."""
    one_line = json.dumps(value, ensure_ascii=False, separators=None if _has_blanks(text) else (",", ":"))
    lines = (
        _has_lines(text) and not _is_flat(value) if like is None or like[:1] not in ("{", "[", "\n") else "\n" in like
    )
    if not lines:
        return one_line
    line_end = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_indent(text)).replace("\n", line_end + _line_indent(text, at))


def _is_flat(value: object) -> bool:
    return isinstance(value, list) and not any(isinstance(each, list | dict) for each in value)


def _has_lines(text: str) -> bool:
    return "\n" in text.strip()


def _has_blanks(text: str) -> bool:
    return re.search(r'":[ \t\r\n]', text) is not None or '":' not in text


def _indent(text: str) -> str:
    """Return the indent of one level: that of the first key of the text."""
    found = re.match(r"[\s\ufeff]*\{[ \t]*\r?\n(?:[ \t]*\r?\n)*(?P<indent>[ \t]+)", text)
    return found["indent"] if found is not None else INDENT


def _line_indent(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    found = re.compile(r"[ \t]*").match(text, start)
    return found[0] if found is not None else ""


def value_at(raw: Any, path: Sequence[str]) -> Any:
    """Return the value of a parsed text at `path`.

    Raises:
        KeyError: `path` does not exist.
    """
    for key in path:
        if not isinstance(raw, dict):
            raise KeyError(key)
        raw = raw[key]
    return raw
