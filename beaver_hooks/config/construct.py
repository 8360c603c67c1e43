"""Calls the constructor of a settings class, and finds out which field it refused."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from beaver_hooks.config.type_hints import argument_of
from beaver_hostspecs.settings import Unfit

NOT_ACCEPTABLE = "is not acceptable"
"""The problem reported for a foreign validator, converter or check, whose own text may hold the value."""


@attrs.frozen(kw_only=True)
class Refusal:
    """A constructor's refusal of its arguments.

    Attributes:
        attribute: the refused field, or `None` for the object as a whole.
        problem: the fault, without a value.
    """

    attribute: "attrs.Attribute[Any] | None"
    problem: str


def make(cls: type, arguments: Mapping[str, Any]) -> tuple[Any, Refusal | None]:
    """Return the instance and `None`, or `None` and the refusal. The class's own exceptions never leave this."""
    made, problem = _attempt(functools.partial(cls, **arguments))
    if problem is None:
        return made, None
    return None, _culprit(cls, arguments) or Refusal(attribute=None, problem=problem)


def _culprit(cls: type, arguments: Mapping[str, Any]) -> Refusal | None:
    """Return the first field that its own converter or validator refuses."""
    given = [each for each in attrs.fields(cls) if argument_of(each) in arguments]
    probe: object = object.__new__(cls)
    for attribute in given:
        object.__setattr__(probe, attribute.name, arguments[argument_of(attribute)])
    for attribute in given:
        value = arguments[argument_of(attribute)]
        _, problem = _attempt(functools.partial(_check, probe, attribute, value))
        if problem is not None:
            return Refusal(attribute=attribute, problem=problem)
    return None


def _check(probe: object, attribute: "attrs.Attribute[Any]", value: object) -> None:
    converter: Any = attribute.converter
    if isinstance(converter, attrs.Converter):
        value = cast("Any", converter)(value, probe, attribute)
    elif converter is not None:
        value = converter(value)
    if attribute.validator is not None:
        attribute.validator(probe, attribute, value)


def _attempt(call: Callable[[], Any]) -> tuple[Any, str | None]:
    # The problem is returned, not raised: an exception raised in an `except` block stays chained to the one
    # that it replaces, which may hold the value.
    try:
        return call(), None
    except Unfit as unfit:
        return None, str(unfit) or NOT_ACCEPTABLE
    except Exception:  # noqa: BLE001 - foreign code may raise anything; the caller turns it into its own error
        return None, NOT_ACCEPTABLE
