"""The problems of a request: its size, and every wrong field by its path, never its value. Pure."""

import heapq
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError

from beaver_hostspecs import scrub
from beaver_hostspecs.neutralising import neutralise
from beaver_memory.dispatch.envelopes import Problem

MOST_PROBLEMS = 20
"""Problems that one response names."""

LONGEST_NAME = 40
"""Characters of an unknown field's name that a problem shows."""

_AT = " @ "
"""What stands between a problem and its place in the texts of cattrs."""

MOST_VALUES = 1_000_000
"""Values in a request, counted at all levels."""

MOST_LEVELS = 20
"""Levels of lists and objects in a request, itself included."""

MOST_NAMES = 1_000
"""Fields of one object."""


class InvalidFields(Exception):
    """A request cannot be decoded.

    Attributes:
        problems: the wrong fields.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__(f"{len(problems)} fields are wrong")


class Unfit(TypeError):
    """A value of the wrong type. The error names the right type, and does not hold the value."""


def problems_of(error: Exception, path: str) -> list[Problem]:
    """Return the problems in an error of the converter."""
    found = []
    for line in cattrs.transform_error(error, path=path, format_exception=_sentence):
        sentence, _, place = line.rpartition(_AT)
        found.append(Problem(code="invalid", field=place.lstrip("."), sentence=sentence))
    return found


def _sentence(error: BaseException, _: object) -> str:
    match error:
        case Unfit():
            return f"It {error}."
        case ForbiddenExtraKeysError():
            names = (
                scrub(neutralise(name))[:LONGEST_NAME] for name in heapq.nsmallest(MOST_PROBLEMS, error.extra_fields)
            )
            return f"Unknown fields: {', '.join(names)}."
        case KeyError():
            return "It is missing."
        case ValueError(args=(_, attrs.Attribute(name=name), *_)):
            return f"`{name}` is out of range."
        case ValueError():
            # attrs puts the value behind a colon.
            return f"It does not fit: {str(error).partition(': ')[0]}."
    return "It does not fit."


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
