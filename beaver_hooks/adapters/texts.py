"""Writes what frameworks hand around as text: what tools return, and answers that are no text. Pure.

Nothing that a framework holds is harmed by it: no iterator is consumed, and whatever an object does when it is asked
for its text, no exception gets out.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from beaver_hostspecs.naming import type_name

JSON = (str, int, float, list, tuple, dict)
"""What JSON has a form for."""


def text_of(value: object) -> str:
    """Return a value as text: a str as it is, nothing for `None`, else its JSON, else how it shows itself."""
    try:
        plain = "" if value is None else value if isinstance(value, JSON) else _data(value)
        return plain if isinstance(plain, str) else _json(plain)
    except Exception:  # noqa: BLE001 - the code of any type may run here
        return _shown(value)


def _json(value: object) -> str:
    return json.dumps(value, default=_data, ensure_ascii=False, separators=(",", ":"))


def _data(value: object) -> object:
    """Return what JSON has no form for in one that it has."""
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
