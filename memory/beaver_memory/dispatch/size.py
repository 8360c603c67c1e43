"""The bounds of a request's JSON, which hold before anything in it is decoded. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from beaver_memory.dispatch.envelopes import Problem

MOST_VALUES = 1_000_000
"""Values in a request, counted at all levels."""

MOST_LEVELS = 20
"""Levels of lists and objects in a request, itself included."""

MOST_NAMES = 1_000
"""Fields of one object."""


def problem_of_size(body: object) -> Problem | None:
    """Return why a request is too large to be decoded, or `None`."""
    if not isinstance(body, Mapping):
        return Problem(code="invalid", sentence="The request must be an object.")
    count = 0
    level: list[Any] = [body]
    for _ in range(MOST_LEVELS):
        count += sum(map(len, level))
        if count > MOST_VALUES:
            return _too_large(f"The request holds more than {MOST_VALUES:,} values.")
        if any(isinstance(each, Mapping) and len(each) > MOST_NAMES for each in level):
            return _too_large(f"An object in the request has more than {MOST_NAMES:,} fields.")
        if any(isinstance(each, Mapping) and not all(isinstance(name, str) for name in each) for each in level):
            return Problem(code="invalid", sentence="The names of fields must be texts.")
        level = [inner for each in level for inner in _values(each) if isinstance(inner, (Mapping, list))]
        if not level:
            return None
    return _too_large(f"The request has more than {MOST_LEVELS} levels.")


def _values(container: Any) -> Iterable[object]:
    values: Iterable[object] = container.values() if isinstance(container, Mapping) else container
    return values


def _too_large(sentence: str) -> Problem:
    return Problem(code="too_large", sentence=sentence)
