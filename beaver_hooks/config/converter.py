"""Converts plain JSON data to the settings classes of the host and of plugins.

A cattrs converter with its own hooks only, because the stock hooks turn numbers and mappings into strings, and
their errors hold the value. Strict: a boolean is no number, no other value becomes a string, unknown keys are
refused. The first fault is reported: unknown keys of an object first, then its fields in the order of the
class. No error, and no exception chained to one, holds a value.
"""

import enum
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, cast, get_args, get_origin

import attrs
import cattrs

from beaver_hooks.config.construct import make
from beaver_hooks.config.environment import is_reference, lookup
from beaver_hooks.config.json_checks import check_plain
from beaver_hooks.config.paths import child, item
from beaver_hooks.config.suggestions import did_you_mean, meant_or_known
from beaver_hooks.config.type_hints import (
    ANYTHING,
    OBJECTS,
    argument_of,
    array_of,
    key_of,
    old_keys_of,
    optional_of,
    origin_of,
    rest_field,
    settings_fields,
)
from beaver_hostspecs import ConfigurationError, Secret, freeze

T = TypeVar("T")
Hook = Callable[[Any, Any], Any]


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
    return cast("T", _Structurer(environment, path).convert(value, cls))


class _Structurer:
    """One conversion: a converter, and its current place in the configuration."""

    def __init__(self, environment: Mapping[str, str], path: str) -> None:
        self._environment = environment
        self._path = path
        self._converter = cattrs.Converter()
        for kind, hook in self._classes().items():
            self._converter.register_structure_hook(kind, hook)
        for is_ours, hook in self._predicates():
            self._converter.register_structure_hook_func(is_ours, hook)

    def convert(self, value: object, kind: Any) -> Any:
        return self._converter.structure(value, kind)

    def _classes(self) -> dict[type, Hook]:
        """Return the hooks that replace stock hooks, which cattrs consults before any predicate."""
        return {
            str: self._exactly(str, lambda value: value if isinstance(value, str) else self._want("a string")),
            bool: self._exactly(bool, lambda value: value if isinstance(value, bool) else self._want("true or false")),
            int: self._exactly(int, lambda value: value if _is_integer(value) else self._want("an integer")),
            float: self._exactly(float, self._number),
            Path: self._exactly(Path, self._file),
            bytes: self._unsupported,
        }

    def _predicates(self) -> list[tuple[Callable[[Any], bool], Hook]]:
        """Return the other hooks; cattrs consults the last one first."""
        return [
            (lambda _: True, self._unsupported),
            (lambda kind: kind in ANYTHING, lambda value, _: freeze(value)),
            (lambda kind: kind is Secret, lambda value, _: self._secret(value)),
            (lambda kind: origin_of(kind) in OBJECTS, self._mapping),
            (lambda kind: array_of(kind) is not None, self._array),
            (lambda kind: optional_of(kind) is not None, self._optional),
            (lambda kind: get_origin(kind) is Literal, self._literal),
            (_is_enum, self._enum),
            (lambda kind: isinstance(kind, type) and attrs.has(kind), self._object),
        ]

    def _exactly(self, kind: type, hook: Callable[[Any], Any]) -> Hook:
        # Subclasses come here too: an enum of strings is a str.
        def convert(value: object, asked: type) -> object:
            if asked is kind:
                return hook(value)
            return self._enum(value, asked) if _is_enum(asked) else self._unsupported(value, asked)

        return convert

    # --- Scalars
    # --------------------------------------------------------------------------------------------------

    def _number(self, value: object) -> float:
        if isinstance(value, float) or _is_integer(value):
            return float(cast("float", value))
        return self._want("a number")

    def _file(self, value: object) -> Path:
        if not isinstance(value, str) or not value:
            self._want("the path of a file or folder")
        try:
            return Path(value).expanduser()
        except RuntimeError:
            problem = "names a home folder that cannot be found"
        return self._refuse(problem)

    def _secret(self, value: object) -> Secret:
        if isinstance(value, str):
            return Secret(value) if value else self._refuse("must not be empty")
        if not is_reference(value):
            self._want('a string or {"env": "NAME"}')
        text, problem = lookup(value, self._environment)
        return Secret(text) if text is not None else self._refuse(problem)

    def _enum(self, value: object, kind: type[enum.Enum]) -> enum.Enum:
        members = {_exact(member.value): member for member in kind}
        return cast("enum.Enum", self._choose(value, members))

    def _literal(self, value: object, kind: Any) -> Any:
        return self._choose(value, {_exact(each): each for each in get_args(kind)})

    def _choose(self, value: object, choices: Mapping[tuple[type, object], Any]) -> Any:
        # Compared with its type, because 1 equals True.
        if isinstance(value, str | int | float) and _exact(value) in choices:
            return choices[_exact(value)]
        return self._want(f"one of {', '.join(f'`{choice}`' for _, choice in choices)}")

    # --- Containers
    # ----------------------------------------------------------------------------------------

    def _optional(self, value: object, kind: Any) -> Any:
        inner = optional_of(kind)
        if value is None or (inner is Secret and self._is_unset(value)):
            return None
        return self.convert(value, inner)

    def _array(self, value: object, kind: Any) -> Any:
        if not isinstance(value, list | tuple):
            self._want("a list")
        made = cast("type", array_of(kind))
        inner = (*get_args(kind), Any)[0]
        return made(self._at(item(self._path, index), each, inner) for index, each in enumerate(value))

    def _mapping(self, value: object, kind: Any) -> Any:
        arguments = get_args(kind) or (str, Any)
        if arguments[0] is not str:
            self._unsupported(value, kind)
        if not isinstance(value, Mapping):
            self._want("an object")
        made = {key: self._at(child(self._path, key), each, arguments[1]) for key, each in value.items()}
        return made if origin_of(kind) is dict else types.MappingProxyType(made)

    def _object(self, value: object, cls: type) -> Any:
        if not isinstance(value, Mapping):
            self._want("an object")
        attributes = self._fields_of(cls)
        value, given = self._renamed(value, attributes)
        others = [key for key in value if key not in {key_of(each) for each in attributes}]
        arguments = self._rest(value, others, cls, attributes)
        for attribute in attributes:
            arguments.update(self._field(value, attribute, given.get(key_of(attribute), key_of(attribute))))
        made, refusal = make(cls, arguments)
        if refusal is None:
            return made
        key = key_of(refusal.attribute) if refusal.attribute else None
        with self._inside(child(self._path, given.get(key, key)) if key else self._path):
            return self._refuse(refusal.problem)

    def _renamed(
        self, value: Mapping[str, Any], attributes: list["attrs.Attribute[Any]"]
    ) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return an object with the current names of its fields, and the old names of renamed ones."""
        given: dict[str, str] = {}
        for attribute in attributes:
            key = key_of(attribute)
            for old in (each for each in old_keys_of(attribute) if each in value):
                if key in value or key in given:
                    with self._inside(child(self._path, old)):
                        self._refuse(
                            f"is an old name of `{given.get(key, key)}`, which is given too; take one of them out"
                        )
                given[key] = old
        names = {old: key for key, old in given.items()}
        return {names.get(key, key): each for key, each in value.items()}, given

    def _fields_of(self, cls: type) -> list["attrs.Attribute[Any]"]:
        try:
            return settings_fields(cls)
        except NameError:
            # An annotation cannot be resolved; the error raised below must not be chained to this one.
            pass
        return self._unsupported(None, cls)

    def _rest(
        self, value: Mapping[str, Any], others: list[str], cls: type, known: list["attrs.Attribute[Any]"]
    ) -> dict[str, Any]:
        taker, keys = rest_field(cls), [key_of(each) for each in known]
        for key in others:
            if taker is None or not isinstance(value[key], Mapping):
                unknown = f"is not a setting{meant_or_known(key, keys, 'settings')}"
                with self._inside(child(self._path, key)):
                    self._refuse(unknown if taker is None else f"must be an object{did_you_mean(key, keys)}")
        if taker is None:
            return {}
        return {argument_of(taker): self.convert({key: value[key] for key in others}, taker.type)}

    def _field(self, value: Mapping[str, Any], attribute: "attrs.Attribute[Any]", given: str) -> dict[str, Any]:
        """Return the argument for a field; `given` is its name in the file, for errors."""
        key, optional = key_of(attribute), attribute.default is not attrs.NOTHING
        missing = key not in value or (attribute.type is Secret and optional and self._is_unset(value[key]))
        if missing and optional:
            return {}
        with self._inside(child(self._path, given)):
            if missing:
                self._refuse("is missing")
            return {argument_of(attribute): self.convert(value[key], attribute.type)}

    # --- The current place
    # ---------------------------------------------------------------------------------------------

    def _is_unset(self, value: object) -> bool:
        return is_reference(value) and not self._environment.get(value["env"])

    def _at(self, path: str, value: object, kind: Any) -> Any:
        with self._inside(path):
            return self.convert(value, kind)

    @contextmanager
    def _inside(self, path: str) -> Iterator[None]:
        # Not restored after an error: the first one ends the conversion.
        before, self._path = self._path, path
        yield
        self._path = before

    def _want(self, wanted: str) -> NoReturn:
        self._refuse(f"must be {wanted}")

    def _unsupported(self, _value: object, _kind: object) -> NoReturn:
        self._refuse("is declared with a type that a configuration cannot hold")

    def _refuse(self, problem: str) -> NoReturn:
        raise ConfigurationError(self._path, problem)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_enum(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _exact(value: Any) -> tuple[type, Any]:
    return type(value), value
