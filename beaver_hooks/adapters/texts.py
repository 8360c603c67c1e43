"""Converts objects of frameworks into text: results of tools, and answers that are no text. Pure.

The conversion does not change these objects: it consumes no iterator, and catches every exception of an object that is
asked for its text.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from beaver_hostspecs.naming import type_name

JSON = (str, int, float, list, tuple, dict)
"""The types that JSON can represent."""


def text_of(value: object) -> str:
    """Return a value as text: a str unchanged, empty for `None`, else its JSON, else its `str`."""
    try:
        plain = "" if value is None else value if isinstance(value, JSON) else _data(value)
        return plain if isinstance(plain, str) else _json(plain)
    except Exception:  # noqa: BLE001 - the code of any type may run here
        return _shown(value)


def _json(value: object) -> str:
    return json.dumps(value, default=_data, ensure_ascii=False, separators=(",", ":"))


def _data(value: object) -> object:
    """Return a value without a JSON form in one that has it."""
    match value:
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return sorted(value, key=repr)
        case Enum():
            return value.value
        case bytes() | bytearray() | memoryview():
            return f"[{len(value)} bytes]"
        case _:
            return _record(value) or _shown(value)


def _record(value: Any) -> dict[str, Any] | None:
    """Return the fields of a model of pydantic, or of a dataclass."""
    if callable(dump := getattr(type(value), "model_dump", None)):
        return dict(dump(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return None


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - so it may here
        return f"[{type_name(value)}]"
