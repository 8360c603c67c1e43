"""Calls the constructor of a settings class, and finds out which field it refused."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from beaver_hooks.config.type_hints import argument_of
from beaver_hostspecs.settings import Unfit

NOT_ACCEPTABLE = "is not acceptable"
"""What is said for a validator, converter or check that is not ours: its own text may hold the value."""


@attrs.frozen(kw_only=True)
class Refusal:
    """What the constructor did not take.

    Attributes:
        attribute: the field, or `None` when it is the object as a whole.
        problem: what is wrong with it, without a value.
    """

    attribute: "attrs.Attribute[Any] | None"
    problem: str


def make(cls: type, arguments: Mapping[str, Any]) -> tuple[Any, Refusal | None]:
    """Return the instance and `None`, or `None` and why there is none. What the class raises stays inside."""
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
    # The problem is returned and not raised from here: an exception raised in an `except` block stays chained
    # to the one it replaces, and that one may hold the value.
    try:
        return call(), None
    except Unfit as unfit:
        return None, str(unfit) or NOT_ACCEPTABLE
    except Exception:  # noqa: BLE001 - foreign code may raise anything; the caller turns it into its own error
        return None, NOT_ACCEPTABLE
