"""Parses a file, or its text, into a `Config`: strict JSON, read once, and errors without any of its text."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.converter import structure
from beaver_hooks.config.json_checks import DEEPEST, check_plain
from beaver_hooks.config.model import FAIL_CLOSED, Config, Plugins
from beaver_hooks.config.paths import child, located_in, printable
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import NotRegular, open_regular
from beaver_toolkit.strict_json import InvalidJson, loads

MOST_BYTES = 1024 * 1024


def read_config(path: Path, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration at `path` without a confirmation; `load_config` asks for one.

    Raises:
        ConfigurationError: it cannot be read, is not strict JSON, or a setting is wrong.
    """
    return build_config(read_json(path), environment=environment, source=path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a configuration file, as plain JSON data; see `parse_json`.

    Raises:
        ConfigurationError: it cannot be read or is not strict JSON; names the file.
    """
    return located_in(path, partial(parse_json, read_bytes(path)))


def parse_config(text: str | bytes, *, environment: Mapping[str, str] | None = None) -> Config:
    """Return the configuration in `text`.

    Raises:
        ConfigurationError: it is not strict JSON, or a setting is wrong.
    """
    return build_config(parse_json(text), environment=environment)


def build_config(
    raw: Mapping[str, Any], *, environment: Mapping[str, str] | None = None, source: Path | None = None
) -> Config:
    """Return the configuration for an already parsed file; the environment is the process's unless given.

    Raises:
        ConfigurationError: a setting is wrong; names the file `source`, if any.
    """
    environment = os.environ if environment is None else environment
    made = located_in(source, partial(structure, Config, raw, "", environment=environment))
    located_in(source, partial(_check_fail_closed, made.plugins))
    config = attrs.evolve(made, source=source)
    if config.memory is None:
        return config
    return attrs.evolve(config, memory=attrs.evolve(config.memory, explicit="mode" in raw["memory"]))


def _check_fail_closed(plugins: Plugins) -> None:
    for name, closed in plugins.fail_closed.items():
        if not isinstance(closed, bool):
            raise ConfigurationError(child(child("plugins", name), FAIL_CLOSED), "must be true or false")


def read_bytes(path: Path) -> bytes:
    """Return the content of a configuration file.

    Raises:
        ConfigurationError: it is missing, cannot be read, is no regular file or is too large.
    """
    name = printable(str(path))
    try:
        with open_regular(path) as file:
            return file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        problem = f"the configuration file {name} does not exist; create it or correct the path"
    except NotRegular:
        problem = f"the configuration file {name} is not a regular file; name the JSON file itself"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a valid path"
        problem = f"the configuration file {name} cannot be read ({why}); check its permissions and the path"
    raise _fault(problem)


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Return the object in `text`, as plain JSON data.

    Stricter than the standard library: no NaN, no infinity, no key given twice, no lone surrogate or NUL, no
    absurd number, at most 50 levels, at most 1 MiB. A byte order mark is accepted.

    Raises:
        ConfigurationError: names the line and column of a syntax error, or the path of a wrong value.
    """
    if len(text) > MOST_BYTES:
        raise _fault(f"is larger than {MOST_BYTES} bytes")
    value = _loads(text)
    check_plain(value, "")
    if not isinstance(value, dict):
        raise _fault("must be a JSON object")
    return value


def _loads(text: str | bytes) -> object:
    try:
        return loads(text, deepest=DEEPEST, keep_repeated=True, keep_numbers=True)
    except InvalidJson as error:
        problem = error.problem
    raise _fault(problem)


def _fault(problem: str) -> ConfigurationError:
    return ConfigurationError("", problem if problem.startswith("the") else f"the configuration {problem}")
