"""The effective configuration, defaults included, as plain data without the values of secrets."""

import enum
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.entries import Classes
from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.model import FAIL_CLOSED, Config, Memory
from beaver_hooks.config.type_hints import key_of, settings_fields
from beaver_hostspecs import Secret

MASK = "***"
"""Stands for a secret in the file itself, and for the texts and numbers of unknown plugins."""


def effective(config: Config, raw: Mapping[str, Any], classes: Classes, environment: Mapping[str, str]) -> Any:
    """Return every setting with its effective value.

    Args:
        config: the configuration.
        raw: the JSON data that it was made from.
        classes: the settings class of each known plugin, by the path of its section.
        environment: the variables in which `{"env": "NAME"}` is looked up.

    Raises:
        ConfigurationError: the section of a plugin does not fit.
    """
    made = _plain(attrs.evolve(config, memory=config.memory or Memory()), raw)
    for path, section in config.plugin_sections.items():
        if path not in classes:
            _put(made, path, _hidden(section))
    for path, cls in classes.items():
        settings: Any = config.settings(cls, path, environment=environment)
        _put(made, path, _plain(settings, config.section(path) or {}))
    for name, closed in config.plugins.fail_closed.items():
        _put(made, f"plugins.{name}", {FAIL_CLOSED: closed, **made["plugins"].get(name, {})})
    return made


def _put(made: dict[str, Any], path: str, section: object) -> None:
    root, _, name = path.partition(".")
    made[root][name] = section


def _plain(value: Any, raw: Any) -> Any:
    """Return a setting as plain data; `raw` is the file's data in its place."""
    if isinstance(value, Secret) or (value is None and is_reference(raw)):
        return dict(raw) if is_reference(raw) else MASK
    if attrs.has(type(value)):
        fields = settings_fields(type(value))
        return {key_of(each): _plain(getattr(value, each.name), _in(raw, key_of(each))) for each in fields}
    if isinstance(value, Mapping):
        return {key: _plain(each, _in(raw, key)) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return _listed(value, raw)
    return _scalar(value)


def _listed(value: Collection[Any], raw: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        return sorted((_plain(each, None) for each in value), key=str)
    rest = raw if isinstance(raw, list | tuple) else ()
    return [_plain(each, rest[index] if index < len(rest) else None) for index, each in enumerate(value)]


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def _in(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, Mapping) else None


def _hidden(value: Any) -> Any:
    """Return the section of an unknown plugin, masked, as its secrets are unknown too."""
    if is_reference(value):
        return dict(value)
    if isinstance(value, Mapping):
        return {key: _hidden(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(each) for each in value]
    return value if value is None or isinstance(value, bool) else MASK
