"""The JSON Schema of the configuration file, for editors: generated from the settings classes."""

import enum
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

import attrs

from beaver_hooks.config.model import FAIL_CLOSED, Config
from beaver_hooks.config.paths import child
from beaver_hooks.config.type_hints import (
    OBJECTS,
    array_of,
    key_of,
    optional_of,
    origin_of,
    rest_field,
    settings_fields,
)
from beaver_hostspecs import Secret
from beaver_hostspecs.settings import HELP, KEYWORDS

Schema = dict[str, Any]

_SECRET: Mapping[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {"env": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
            "required": ["env"],
            "additionalProperties": False,
        },
    ]
}

_FAIL_CLOSED: Mapping[str, Any] = {
    "type": "boolean",
    "description": "whether a failure of the plugin before a prompt stops the turn; by default the memory mode decides",
}

_SCALARS: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Path: {"type": "string", "minLength": 1},
    Secret: _SECRET,
}


@attrs.frozen(kw_only=True)
class _Sections:
    """The known sections of plugins; see `config_schema`."""

    known: Mapping[str, type]
    others: bool


def config_schema(sections: Mapping[str, type] = MappingProxyType({}), *, others: bool = False) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a configuration file.

    Args:
        sections: the settings class of each plugin, by the path of its section.
        others: whether sections of other plugins are allowed; their content is not checked.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Beaver Hooks configuration",
        **_object(Config, "", _Sections(known=sections, others=others)),
    }


def _object(cls: type, path: str, sections: _Sections) -> Schema:
    attributes = settings_fields(cls)
    properties = {key_of(each): _property(each, child(path, key_of(each)), sections) for each in attributes}
    others: Schema | bool = False
    if rest_field(cls) is not None:
        properties |= _sections(path, sections)
        others = _other(path) if sections.others else False
    required = [key_of(each) for each in attributes if each.default is attrs.NOTHING]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": others}
    return schema | ({"required": required} if required else {})


def _sections(path: str, sections: _Sections) -> Schema:
    prefix = f"{path}."
    found = {
        where.removeprefix(prefix): _object(cls, where, sections)
        for where, cls in sections.known.items()
        if where.startswith(prefix)
    }
    return found if path != "plugins" else _with_fail_closed(found, sections)


def _with_fail_closed(found: Schema, sections: _Sections) -> Schema:
    """Add `failClosed` to the sections of `plugins`, and a section for each plugin whose settings are elsewhere."""
    for where in sections.known:
        nothing = {"type": "object", "properties": {}, "additionalProperties": False}
        section = found.setdefault(where.partition(".")[2], nothing)
        section["properties"] = {FAIL_CLOSED: _FAIL_CLOSED, **section["properties"]}
    return found


def _other(path: str) -> Schema:
    """Return the schema of an unknown plugin's section."""
    return {"type": "object"} | ({"properties": {FAIL_CLOSED: _FAIL_CLOSED}} if path == "plugins" else {})


def _property(attribute: "attrs.Attribute[Any]", path: str, sections: _Sections) -> Schema:
    inner = optional_of(attribute.type)
    schema = _kind(inner or attribute.type, path, sections) | dict(attribute.metadata.get(KEYWORDS, {}))
    if inner is not None:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if attribute.metadata.get(HELP):
        schema["description"] = attribute.metadata[HELP]
    return schema | _default(attribute)


def _kind(kind: Any, path: str, sections: _Sections) -> Schema:
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if isinstance(kind, type) and attrs.has(kind):
        return _object(kind, path, sections)
    return _holder(kind, arguments, lambda inner: _kind(inner, path, sections))


def _holder(kind: Any, arguments: tuple[Any, ...], of: Callable[[Any], Schema]) -> Schema:
    inner = optional_of(kind)
    if inner is not None:
        return {"anyOf": [of(inner), {"type": "null"}]}
    if array_of(kind) is not None:
        return {"type": "array"} | ({"items": of(arguments[0])} if arguments else {})
    if origin_of(kind) in OBJECTS:
        return {"type": "object"} | ({"additionalProperties": of(arguments[1])} if arguments else {})
    return {}


def _default(attribute: "attrs.Attribute[Any]") -> Schema:
    """Return the default if it is plain data; a default that is a settings class has its own defaults inside."""
    default = attribute.default
    # attrs' mark for "no default" is itself a member of an enum.
    if isinstance(default, enum.Enum) and default is not attrs.NOTHING:
        default = default.value
    if isinstance(default, tuple | frozenset):
        default = list(default)
    shown = default is None or isinstance(default, str | int | float | bool | list)
    return {"default": default} if shown else {}
