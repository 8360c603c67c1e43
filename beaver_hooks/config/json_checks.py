"""Checks that a configuration is plain JSON data, without values that other JSON readers treat differently."""

from collections.abc import Mapping
from typing import Any, NoReturn

from beaver_hooks.config.paths import child, item
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.strict_json import repeated_keys

DEEPEST = 50
"""The levels of nested objects and lists; a file written by hand has fewer."""

_LARGEST = 10**100


def check_plain(value: object, path: str, depth: int = 0) -> None:
    """Refuse a value that is no plain JSON data.

    Raises:
        ConfigurationError: NaN, infinity or an absurdly large number; a lone surrogate or NUL in a string or
            key; a key given twice; more than 50 levels; a type that JSON does not have.
    """
    if depth > DEEPEST:
        _refuse(path, f"is nested more than {DEEPEST} levels deep")
    if isinstance(value, dict) and (repeated := repeated_keys(value)):
        _refuse(child(path, repeated[0]), "is given twice")
    if isinstance(value, Mapping):
        _check_object(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, element in enumerate(value):
            check_plain(element, item(path, index), depth + 1)
    else:
        _check_scalar(value, path)


def text_problem(text: str) -> str | None:
    """Return the fault of a string, or `None`."""
    if "\0" in text:
        return "must not contain a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "must not contain a lone surrogate"
    return None


def _check_object(value: Mapping[Any, object], path: str, depth: int) -> None:
    for key, element in value.items():
        if not isinstance(key, str):
            _refuse(path, "has a key that is not a string")
        problem = text_problem(key)
        if problem is not None:
            _refuse(path, f"has a key that {problem}")
        check_plain(element, child(path, key), depth + 1)


def _check_scalar(value: object, path: str) -> None:
    if isinstance(value, str):
        problem = text_problem(value)
        if problem is not None:
            _refuse(path, problem)
    elif isinstance(value, int | float):
        # Every comparison with NaN is false, so this refuses NaN as well as infinity.
        if not abs(value) < (float("inf") if isinstance(value, float) else _LARGEST):
            _refuse(path, "must be a finite number of sensible size")
    elif value is not None:
        _refuse(path, "is not plain JSON data")


def _refuse(path: str, problem: str) -> NoReturn:
    raise ConfigurationError(path, problem if path else f"the configuration {problem}")
