"""Checks the arguments from a model against a tool's schema: the part of JSON Schema that the tools use. Pure.

An error names the argument and its constraint, and never repeats the value.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from beaver_hooks_local.tools.schemas import DATE
from beaver_memory.texts import cleaned


class ArgumentError(ValueError):
    """The arguments of a tool do not fit."""


def checked(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with texts that can be stored, without optional ones that are `None`.

    Raises:
        ArgumentError: they do not fit the schema.
    """
    known = schema["properties"]
    if unknown := [name for name in arguments if name not in known]:
        wanted = ", ".join(known)
        raise ArgumentError(f"unknown arguments ({len(unknown)}); the arguments are: {wanted}.")
    given = {name: value for name, value in arguments.items() if value is not None}
    if missing := [name for name in schema["required"] if name not in given]:
        raise ArgumentError(f"`{missing[0]}` is missing.")
    return {name: _value(value, known[name], f"`{name}`") for name, value in given.items()}


def _value(value: object, schema: Mapping[str, Any], where: str) -> Any:
    return _KINDS[schema["type"]](value, schema, where)


def _text(value: object, schema: Mapping[str, Any], where: str) -> str | datetime:
    if not isinstance(value, str):
        raise ArgumentError(f"{where} must be a text.")
    if "enum" in schema and value not in schema["enum"]:
        raise ArgumentError(f"{where} must be one of: {', '.join(schema['enum'])}.")
    low, high = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    if not low <= len(value) <= high:
        raise ArgumentError(f"{where} must have {low} to {high} characters.")
    return _moment(value, where) if schema.get("pattern") == DATE else cleaned(value)


def _moment(value: str, where: str) -> datetime:
    """Return a moment in UTC, which is also the default time zone; a date means its first moment."""
    try:
        found = datetime.fromisoformat(value) if re.match(DATE, value) else None
        moment = found and (found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC))
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise ArgumentError(f"{where} must be an ISO date such as 2026-11-18 or 2026-11-18T09:30:00Z.")
    return moment


def _integer(value: object, schema: Mapping[str, Any], where: str) -> int:
    # In JSON, 3.0 and 3 are the same number.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentError(f"{where} must be a whole number.")
    low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    if not low <= value <= high:
        raise ArgumentError(f"{where} must be from {low} to {high}.")
    return value


def _array(value: object, schema: Mapping[str, Any], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"{where} must be a list.")
    low, high = schema.get("minItems", 0), schema["maxItems"]
    if not low <= len(value) <= high:
        raise ArgumentError(f"{where} must have {low} to {high} entries.")
    return tuple(_value(each, schema["items"], f"each entry of {where}") for each in value)


_KINDS: Mapping[str, Callable[[Any, Mapping[str, Any], str], Any]] = MappingProxyType(
    {"string": _text, "integer": _integer, "array": _array}
)
