"""Converts plain JSON data to the settings classes of the host and of plugins.

Strict: a boolean is no number, no other value becomes a string, unknown keys are refused. The first fault is
reported: first a field that an object gives under two names, then unknown keys, then the fields in the order of the
class. No error, and no exception chained to one, holds a value.
"""

import enum
import functools
import types
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast, get_args, get_origin

import attrs

from beaver_hooks.config.environment import is_reference, lookup
from beaver_hooks.config.json_checks import check_plain
from beaver_hooks.config.paths import child, did_you_mean, item, meant_or_known
from beaver_hooks.config.type_hints import (
    ANYTHING,
    OBJECTS,
    argument_of,
    array_of,
    key_of,
    optional_of,
    origin_of,
    rest_field,
    settings_fields,
)
from beaver_hostspecs import ConfigurationError, Secret, freeze
from beaver_hostspecs.settings import Unfit

T = TypeVar("T")

_SCALARS: Mapping[Any, tuple[str, Any]] = {
    str: ("a string", str),
    bool: ("true or false", bool),
    int: ("an integer", int),
    float: ("a number", int | float),
}
"""How an error calls each scalar type, and the types of its values."""

NOT_ACCEPTABLE = "is not acceptable"
"""The problem reported for a foreign validator, converter or check, whose own text may hold the value."""


def structure(cls: type[T], value: object, path: str, *, environment: Mapping[str, str]) -> T:
    """Return an instance of a settings class, made from plain JSON data.

    Args:
        cls: an attrs class whose fields are annotated with str, int, float, bool, `Path`, `Secret`, enums,
            `Literal`, further attrs classes, and lists, mappings with string keys and `| None` of these.
        value: the data of the configuration at `path`.
        path: the place in the configuration, for example `memory.gateway`.
        environment: the variables in which `{"env": "NAME"}` is looked up.

    Raises:
        ConfigurationError: the value does not fit; names the path of the field, never its value.
    """
    check_plain(value, path)
    return cast("T", _Converter(environment).convert(value, cls, path))


@attrs.frozen
class _Converter:
    """Converts with the variables of `environment`; `path` is always the place of `value` in the configuration."""

    environment: Mapping[str, str]

    def convert(self, value: object, kind: Any, path: str) -> Any:
        """Return `value` as the annotation `kind` of a field declares it."""
        inner = optional_of(kind)
        if inner is not None:
            unset = value is None or (inner is Secret and self._is_unset(value))
            return None if unset else self.convert(value, inner, path)
        if kind in ANYTHING:
            return freeze(value)
        if kind in _SCALARS:
            return _scalar(value, kind, path)
        if kind is Path:
            return _file(value, path)
        if kind is Secret:
            return self._secret(value, path)
        return self._choice_or_container(value, kind, path)

    def _choice_or_container(self, value: object, kind: Any, path: str) -> Any:
        if get_origin(kind) is Literal:
            return _choose(value, {_exact(each): each for each in get_args(kind)}, path)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _choose(value, {_exact(member.value): member for member in kind}, path)
        if array_of(kind) is not None:
            return self._array(value, kind, path)
        if origin_of(kind) in OBJECTS:
            return self._mapping(value, kind, path)
        if isinstance(kind, type) and attrs.has(kind):
            return self._object(value, kind, path)
        return _unsupported(path)

    def _secret(self, value: object, path: str) -> Secret:
        if isinstance(value, str):
            return Secret(value or _refuse(path, "must not be empty"))
        if not is_reference(value):
            _refuse(path, 'must be a string or {"env": "NAME"}')
        text, problem = lookup(value, self.environment)
        return Secret(text) if text is not None else _refuse(path, problem)

    def _is_unset(self, value: object) -> bool:
        return is_reference(value) and not self.environment.get(value["env"])

    def _array(self, value: object, kind: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            _refuse(path, "must be a list")
        made, inner = cast("type", array_of(kind)), (*get_args(kind), Any)[0]
        return made(self.convert(each, inner, item(path, index)) for index, each in enumerate(value))

    def _mapping(self, value: object, kind: Any, path: str) -> Any:
        keys, inner = get_args(kind) or (str, Any)
        if keys is not str:
            _unsupported(path)
        given = _as_object(value, path)
        made = {key: self.convert(each, inner, child(path, key)) for key, each in given.items()}
        return made if origin_of(kind) is dict else types.MappingProxyType(made)

    def _object(self, value: object, cls: type, path: str) -> Any:
        given, attributes = _as_object(value, path), _fields_of(cls, path)
        arguments = self._rest(given, cls, [key_of(each) for each in attributes], path)
        for attribute in attributes:
            arguments.update(self._field(given, attribute, path))
        made, refusal = make(cls, arguments)
        if refusal is None:
            return made
        return _refuse(child(path, key_of(refusal.attribute)) if refusal.attribute else path, refusal.problem)

    def _rest(self, given: Mapping[str, Any], cls: type, names: Collection[str], path: str) -> dict[str, Any]:
        """Return the argument for the keys without a field of their own, or refuse them."""
        taker, others = rest_field(cls), {key: each for key, each in given.items() if key not in names}
        for key, each in others.items():
            if taker is None:
                _refuse(child(path, key), f"is not a setting{meant_or_known(key, names, 'settings')}")
            if not isinstance(each, Mapping):
                _refuse(child(path, key), f"must be an object{did_you_mean(key, names)}")
        return {} if taker is None else {argument_of(taker): self.convert(others, taker.type, path)}

    def _field(self, given: Mapping[str, Any], attribute: "attrs.Attribute[Any]", path: str) -> dict[str, Any]:
        """Return the argument for a field; none where the default applies."""
        name, optional = key_of(attribute), attribute.default is not attrs.NOTHING
        if name not in given or (attribute.type is Secret and optional and self._is_unset(given[name])):
            return {} if optional else _refuse(child(path, name), "is missing")
        return {argument_of(attribute): self.convert(given[name], attribute.type, child(path, name))}


def _scalar(value: object, kind: type, path: str) -> Any:
    wanted, fitting = _SCALARS[kind]
    if not isinstance(value, fitting) or (isinstance(value, bool) and kind is not bool):
        _refuse(path, f"must be {wanted}")
    return float(cast("float", value)) if kind is float else value


def _file(value: object, path: str) -> Path:
    if not isinstance(value, str) or not value:
        _refuse(path, "must be the path of a file or folder")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        pass  # raised below, so that the error is not chained to one that holds the value
    return _refuse(path, "names a home folder that cannot be found")


def _choose(value: object, choices: Mapping[tuple[type, object], Any], path: str) -> Any:
    # Compared with its type, because 1 equals True.
    if isinstance(value, str | int | float) and _exact(value) in choices:
        return choices[_exact(value)]
    return _refuse(path, f"must be one of {', '.join(f'`{choice}`' for _, choice in choices)}")


def _exact(value: Any) -> tuple[type, Any]:
    return type(value), value


def _as_object(value: object, path: str) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _refuse(path, "must be an object")


def _fields_of(cls: type, path: str) -> list["attrs.Attribute[Any]"]:
    try:
        return settings_fields(cls)
    except NameError:
        pass  # an annotation cannot be resolved; raised below, so that the error is not chained to this one
    return _unsupported(path)


def _unsupported(path: str) -> NoReturn:
    _refuse(path, "is declared with a type that a configuration cannot hold")


def _refuse(path: str, problem: str) -> NoReturn:
    raise ConfigurationError(path, problem)


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
