"""The names that a plugin may have, and names of types without running their code."""

import re
from collections.abc import Callable
from typing import cast

PLUGIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""The allowed names of plugins: a name is a key in the configuration and a folder in the state folder."""

_name_of = cast("Callable[[type], str]", type.__dict__["__name__"].__get__)


_module_of = cast("Callable[[type], object]", type.__dict__["__module__"].__get__)


def module_name(value: object) -> str:
    """Return the module of the type of `value`, or an empty text where it is no text."""
    module = _module_of(type(value))
    return module if type(module) is str else ""


def type_name(value: object) -> str:
    """Return the name of the type of `value`, as the interpreter keeps it.

    `type(value).__name__` asks the metaclass, and a hostile one may raise there, where an error is being contained.
    """
    return _name_of(type(value))
