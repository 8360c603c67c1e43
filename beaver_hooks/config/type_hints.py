"""The fields and types of a settings class, for the converter and the schema."""

import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Union, get_args, get_origin

import attrs

from beaver_hostspecs.settings import KEY

REST = "beaver_hooks.rest"
HIDDEN = "beaver_hooks.hidden"

ARRAYS: Mapping[Any, type] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
}
"""The types given as a JSON list, and the types they become."""

OBJECTS = (dict, Mapping)
"""The types given as a JSON object with free keys."""

ANYTHING = (Any, object)


def rest() -> Any:
    """Return a field that takes every key without a field of its own: the sections of plugins."""
    return attrs.field(factory=lambda: types.MappingProxyType({}), metadata={REST: True}, repr=False)


def hidden(*, default: object, eq: bool = True) -> Any:
    """Return a field that no configuration can set; without `eq` comparisons ignore it."""
    return attrs.field(default=default, metadata={HIDDEN: True}, eq=eq)


def settings_fields(cls: type) -> list["attrs.Attribute[Any]"]:
    """Return the fields a configuration can set, in the order of the class, with resolved types."""
    resolved = attrs.resolve_types(cls, include_extras=False)
    return [each for each in attrs.fields(resolved) if each.init and not _marked(each)]


def rest_field(cls: type) -> "attrs.Attribute[Any] | None":
    """Return the field made by `rest`, if the class has one."""
    return next((each for each in attrs.fields(cls) if REST in each.metadata), None)


def key_of(attribute: "attrs.Attribute[Any]") -> str:
    """Return the name of a field in the file: camelCase, unless the field has another key."""
    if attribute.metadata.get(KEY):
        return str(attribute.metadata[KEY])
    first, *others = argument_of(attribute).rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in others)


def argument_of(attribute: "attrs.Attribute[Any]") -> str:
    """Return the name of a field in the constructor."""
    return attribute.alias or attribute.name


def optional_of(kind: Any) -> Any:
    """Return `X` of `X | None`, and `None` for every other annotation."""
    if get_origin(kind) not in {Union, types.UnionType}:
        return None
    others = [each for each in get_args(kind) if each is not types.NoneType]
    return others[0] if len(others) == 1 and len(get_args(kind)) > 1 else None


def array_of(kind: Any) -> type | None:
    """Return the type that a list annotation makes, or `None` (also for a tuple of fixed length)."""
    made = ARRAYS.get(origin_of(kind))
    arguments = get_args(kind)
    if made is tuple and len(arguments) > 1 and arguments[1] is not ...:
        return None
    return made


def origin_of(kind: Any) -> Any:
    """Return `list` for `list[int]`, and a bare class unchanged."""
    return get_origin(kind) or (kind if isinstance(kind, type) else None)


def _marked(attribute: "attrs.Attribute[Any]") -> bool:
    return REST in attribute.metadata or HIDDEN in attribute.metadata
