"""Makes values fit for the audit database: plain, scrubbed, short, and unable to break the writer."""

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from beaver_hostspecs import Personal, scrub
from beaver_hostspecs.naming import type_name

LONGEST_TEXT = 500
MOST_ITEMS = 1000
DEEPEST = 8
# Checked first, by exact type: nearly every value is one of these.
_FLAT = frozenset({str, int, float, bool, type(None)})
_NESTED = (Mapping, list, tuple, set, frozenset)
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# Built once: json.dumps builds an encoder per call for anything but its defaults. Sorted keys and pure ASCII
# encode the same value to the same bytes, and make lone surrogates and NUL plain escapes.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode

Plain = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None
Answer = TypeVar("Answer")


def short(value: object) -> str:
    """Return a text scrubbed, then cut; any other value as the name of its type."""
    if not isinstance(value, str):
        return type_name(value)
    # str() of a subclass may return anything, an enum's member name for example; this returns the text itself.
    clean = scrub(str.__str__(value))
    return clean if len(clean) <= LONGEST_TEXT else clean[: LONGEST_TEXT - 3] + "..."


def column(value: object) -> str:
    """Return a text for a column of its own: `short`, without NUL and lone surrogates."""
    text = short(value)
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def optional_column(value: object) -> str | None:
    """Return `column(value)`, or `None` for `None`."""
    return None if value is None else column(value)


def stamp(at: object) -> str:
    """Return a time as text that sorts: UTC, microseconds; any other value as the name of its type."""
    if not isinstance(at, datetime):
        return type_name(at)
    try:
        return at.astimezone(UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError):
        # Within a day of the ends of the calendar the conversion to UTC overflows; no real clock shows such a time.
        return at.replace(tzinfo=UTC).isoformat(timespec="microseconds")


def facts_text(facts: Mapping[str, object], identify: Callable[[str], str]) -> str:
    """Return facts as JSON: facts and lists of facts unchanged, `Personal` as keyed hash and length.

    Any other value becomes the name of its type.
    """
    if not facts:
        return "{}"
    plain: dict[str, Plain] = {}
    for key, value in facts.items():
        if isinstance(value, Personal):
            plain[short(key)] = identify(value.value)
            plain[short(key) + "_length"] = len(value.value)
        elif isinstance(value, list | tuple):
            plain[short(key)] = _items([_scalar(item) for item in value[:MOST_ITEMS]], len(value))
        else:
            plain[short(key)] = _scalar(value)
    return _encode(plain)


def body_text(body: object) -> str:
    """Return a receipt or a health record as JSON: nested mappings, lists and facts, to a limit of depth."""
    return _encode(_plain(body, DEEPEST))


def attempt(call: Callable[[], Answer]) -> tuple[Answer | None, str | None]:
    """Run foreign code; return its result, or only the type name of the error that it raised.

    The caller reports the error.
    """
    try:
        return call(), None
    # Any exception on the writer's thread would end the trail.
    except BaseException as error:  # noqa: BLE001
        return None, type_name(error)


def _plain(value: object, depth: int) -> Plain:
    if type(value) in _FLAT:
        return _scalar(value)
    if isinstance(value, _NESTED) and not depth:
        return type_name(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return _items([_plain(item, depth - 1) for item in value[:MOST_ITEMS]], len(value))
    return stamp(value) if isinstance(value, datetime) else _scalar(value)


@lru_cache(1000, typed=True)
def _key(key: object) -> str:
    """Return `short` of a key; the keys of receipts are the same in every turn: fields, plugins, hooks."""
    return short(key)


def _items(items: list[Plain], total: int) -> list[Plain]:
    # A cut list says so, or it would look like a whole one.
    return items if len(items) == total else [*items, f"and {total - len(items)} more"]


def _scalar(value: object) -> Plain:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Compared as plain integers: `in range(...)` searches from end to end for a subclass of int.
        return int(value) if _SMALLEST <= int(value) <= _LARGEST else "int"
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else "float"
    return short(value)
