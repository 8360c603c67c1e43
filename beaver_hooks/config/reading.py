"""From a file, or its text, to a `Config`: strict JSON, read once, and errors without any of its text."""

import json
import math
import os
import re
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from beaver_hooks.config.locating import located_in
from beaver_hooks.config.model import FAIL_CLOSED, Config, Plugins
from beaver_hooks.config.paths import child, printable
from beaver_hooks.config.plain import DEEPEST, Repeated, check_plain
from beaver_hooks.config.renames import renamed_in
from beaver_hooks.config.structuring import structure
from beaver_hostspecs import ConfigurationError

MOST_BYTES = 1024 * 1024
_MOST_DIGITS = 100

# A string (closed or not, so that no quote is scanned twice) or a bracket.
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def read_config(path: Path, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read the configuration at `path`, whoever wrote it; `load_config` is what asks for confirmation.

    Raises:
        ConfigurationError: it cannot be read, is not strict JSON, or a setting is wrong.
    """
    return build_config(read_json(path), environment=environment, source=path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a configuration file holds, as plain JSON data; see `parse_json`.

    Raises:
        ConfigurationError: it cannot be read or is not strict JSON; names the file.
    """
    return located_in(path, partial(parse_json, read_bytes(path)))


def parse_config(text: str | bytes, *, environment: Mapping[str, str] | None = None) -> Config:
    """Return the configuration that `text` holds.

    Raises:
        ConfigurationError: it is not strict JSON, or a setting is wrong.
    """
    return build_config(parse_json(text), environment=environment)


def build_config(
    raw: Mapping[str, Any], *, environment: Mapping[str, str] | None = None, source: Path | None = None
) -> Config:
    """Return the configuration for an already parsed file; the environment is the process's unless given.

    Raises:
        ConfigurationError: a setting is wrong; names the file `source`, if there is one.
    """
    environment = os.environ if environment is None else environment
    made = located_in(source, partial(structure, Config, raw, "", environment=environment))
    located_in(source, partial(_check_fail_closed, made.plugins))
    config = attrs.evolve(made, source=source, renamed=renamed_in(Config, raw))
    if config.memory is None:
        return config
    return attrs.evolve(config, memory=attrs.evolve(config.memory, explicit="mode" in raw["memory"]))


def _check_fail_closed(plugins: Plugins) -> None:
    for name, closed in plugins.fail_closed.items():
        if not isinstance(closed, bool):
            raise ConfigurationError(child(child("plugins", name), FAIL_CLOSED), "must be true or false")


def read_bytes(path: Path) -> bytes:
    """Return what a configuration file holds.

    Raises:
        ConfigurationError: it is not there, cannot be read, is no regular file or is too large.
    """
    name = printable(str(path))
    try:
        return _read(path)
    except FileNotFoundError:
        problem = f"the configuration file {name} does not exist; create it or correct the path"
    except IsADirectoryError:
        problem = f"the configuration file {name} is not a regular file; name the JSON file itself"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a valid path"
        problem = f"the configuration file {name} cannot be read ({why}); check its permissions and the path"
    raise _fault(problem)


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Return the object that `text` holds, as plain JSON data.

    Stricter than the standard library: no NaN, no infinity, no key given twice, no lone surrogate or NUL, no
    absurd number, at most 50 levels, at most 1 MiB. A byte order mark is accepted.

    Raises:
        ConfigurationError: names the line and column of a syntax error, or the path of what is wrong.
    """
    if len(text) > MOST_BYTES:
        raise _fault(f"is larger than {MOST_BYTES} bytes")
    decoded = _decode(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    _check_depth(decoded)
    value = _loads(decoded)
    check_plain(value, "")
    if not isinstance(value, dict):
        raise _fault("must be a JSON object")
    return value


def _read(path: Path) -> bytes:
    # Without O_NONBLOCK a named pipe would be waited for.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise IsADirectoryError
        return file.read(MOST_BYTES + 1)


def _decode(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Only a number leaves this block: the error itself holds the whole file.
        at = error.start
    raise _fault(f"is not UTF-8 text (byte {at + 1})")


def _check_depth(text: str) -> None:
    """Refuse deep nesting before the parser runs out of stack over it."""
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            before = text[: token.start()]
            line, column = before.count("\n") + 1, token.start() - before.rfind("\n")
            raise _fault(f"is nested more than {DEEPEST} levels deep (line {line}, column {column})")


def _loads(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        # Only numbers leave this block: the error itself holds the whole file.
        line, column, at = error.lineno, error.colno, error.pos
    # Some Pythons point to the comma, others behind it.
    comma = at if text[at : at + 1] == "," else len(text[:at].rstrip()) - 1
    why = "there is a trailing comma, " if _TRAILING_COMMA.match(text, max(0, comma)) else ""
    raise _fault(f"is not valid JSON ({why}line {line}, column {column})")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Repeated:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            return Repeated(key)
        found[key] = value
    return found


def _integer(digits: str) -> float:
    # Infinity is refused later, where the path of the field is known.
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _fault(problem: str) -> ConfigurationError:
    return ConfigurationError("", problem if problem.startswith("the") else f"the configuration {problem}")
