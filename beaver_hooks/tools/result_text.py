"""Writes the result of a tool call as text for the model. Pure."""

import json
from collections.abc import Mapping
from datetime import date

from beaver_hooks.text import presentable
from beaver_hostspecs import BeaverError, scrub
from beaver_hostspecs.naming import type_name

LONGEST_LINE = 300
MARK = "[tool error]"
"""The beginning of every text about a failure for the model."""


def render_output(value: object, *, characters: int) -> str:
    """Return a tool's result as text: a str unchanged, else JSON; scrubbed, and cut with a mark.

    Raises:
        TypeError: it contains a value that JSON cannot represent.
        ValueError: it contains itself.
        RecursionError: it is nested too deeply.
    """
    if not isinstance(value, str):
        value = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    text = presentable(scrub(str.__str__(value)))
    return text if len(text) <= characters else text[:characters] + _cut(characters, len(text))


def render_error(name: str, problem: str) -> str:
    """Return the text that tells the model that a call failed."""
    return f"{MARK} {one_line(name) or 'a call without a name'}: {problem}"


def describe_error(error: BaseException) -> str:
    """Return the text of an exception on one line, without a traceback or a secret; with its type if that helps."""
    try:
        said = one_line(str(error))
    except BaseException as trouble:  # noqa: BLE001 - a plugin's code makes the text
        said = f"its text cannot be read ({type_name(trouble)})"
    if issubclass(type(error), BeaverError):  # by its type: an error may lie about its class
        return said
    return f"{type_name(error)}: {said}" if said else type_name(error)


def one_line(text: str) -> str:
    """Return `text` scrubbed, on one line and short."""
    line = presentable(" ".join(scrub(text).split()))
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "..."


def _cut(shown: int, total: int) -> str:
    return f"\n[cut here: {shown} of {total} characters are shown, {total - shown} are missing]"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a {type_name(value)} has no form in JSON")
