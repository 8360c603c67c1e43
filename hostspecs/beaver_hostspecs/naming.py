"""Names things without running their code."""

from collections.abc import Callable
from typing import cast

_name_of = cast("Callable[[type], str]", type.__dict__["__name__"].__get__)


def type_name(value: object) -> str:
    """Return the name of the type of `value`, as the interpreter keeps it.

    `type(value).__name__` asks the metaclass, and a hostile one may raise there, where an error is being contained.
    """
    return _name_of(type(value))
