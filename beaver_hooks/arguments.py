"""Makes the options of a host from its arguments, or says which argument cannot work and what it takes."""

import math
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from beaver_hooks.audit.events import AuditSink
from beaver_hooks.config import Config
from beaver_hooks.config.locations import find_folder, person_folder
from beaver_hooks.options import Options
from beaver_hostspecs import Clock, CommandContext, HostMisused, Services, SystemClock
from beaver_hostspecs.naming import type_name

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def make_options(
    *,
    plugins: Mapping[str, object],
    entry_points: Collection[str] | None,
    fail_closed: Collection[str],
    config: Config | None,
    state_folder: Path | str | None,
    person_folder: Path | str | None,
    services: Services | None,
    sinks: Iterable[AuditSink],
    clock: Clock | None,
    boundary: Callable[[], str] | None,
    environment: Mapping[str, str] | None,
) -> Options:
    """Return the options of a host; the arguments are those of `Host`.

    Raises:
        HostMisused: an argument cannot work.
    """
    plugins = _plugins(plugins)
    state = _state_folder(state_folder)
    named = None if entry_points is None else _names("entry_points", entry_points)
    closed = _names("fail_closed", fail_closed)
    if named is not None:
        _check_known(closed, named | plugins.keys())
    config = Config() if config is None else _a(Config, "config", config, "`Host.from_config(path)` reads a file")
    return Options(
        config=config,
        entry_points=named,
        plugins=plugins,
        fail_closed=closed,
        state_folder=state,
        person_folder=_person_folder(person_folder, None if state_folder is None else state),
        services=Services() if services is None else _a(Services, "services", services),
        environment=os.environ if environment is None else _a(Mapping, "environment", environment),
        sinks=_sinks(sinks),
        clock=SystemClock() if clock is None else _able("clock", clock, "a clock", "now", "monotonic"),
        boundary=_random_boundary if boundary is None else _able("boundary", boundary, "a function", "__call__"),
    )


def _state_folder(given: object) -> Path:
    return find_folder(os.environ, Path.cwd()) if given is None else as_path("state_folder", given)


def _person_folder(given: object, named: Path | None) -> Path:
    if given is not None:
        return as_path("person_folder", given)
    return person_folder(os.environ) if named is None else named


def as_path(name: str, value: object) -> Path:
    """Return an argument of a host that must be a path."""
    if not isinstance(value, str | os.PathLike):
        raise _misused(name, value, "a path")
    return Path(value)


def as_seconds(name: str, value: object) -> float:
    """Return an argument of a host that must be a number of seconds."""
    if not isinstance(value, int | float) or math.isnan(value):
        raise _misused(name, value, "a number of seconds")
    return value


def as_mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return an argument of a host that must be a mapping."""
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise _misused(name, value, "a mapping whose keys are text")
    return value


def as_text(name: str, value: object) -> str:
    """Return an argument of a host that must be a text."""
    if not isinstance(value, str):
        raise _misused(name, value, "a str")
    return value


def as_texts(name: str, value: object) -> tuple[str, ...]:
    """Return an argument of a host that must be several texts."""
    items = _items(name, value, "texts, for example a list of them")
    return tuple(as_text(name, each) for each in items)


def as_context(value: CommandContext) -> CommandContext:
    """Return an argument of a host that must be the context of a command."""
    return _a(CommandContext, "context", value)


def as_name(name: str, value: object) -> str:
    """Return a name that is recorded unchanged: no content, no secret."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _misused(name, value, "a short name of letters, digits, `_` and `-`")
    return value


def _plugins(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _misused("plugins", value, "a mapping of names to plugin objects")
    return dict(value)


def _names(argument: str, value: object) -> frozenset[str]:
    names = _items(argument, value, "names of plugins, for example a list of them")
    if not all(isinstance(name, str) for name in names):
        raise _misused(argument, value, "names, each of them a str")
    return frozenset(names)


def _check_known(closed: frozenset[str], known: frozenset[str]) -> None:
    for name in sorted(closed - known):
        listed = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
        raise HostMisused(
            f"`fail_closed` names `{name}`, which is not a plugin of this host; its plugins are: {listed}"
        )


def _sinks(value: object) -> tuple[AuditSink, ...]:
    items = _items("sinks", value, "audit sinks, for example a list of them")
    return tuple(_able("sinks", each, "audit sinks, each with `append(event)`", "append") for each in items)


def _items(argument: str, value: object, what: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _misused(argument, value, what)
    return tuple(value)


def _a(kind: type[Any], argument: str, value: T, remedy: str = "") -> T:
    if not isinstance(value, kind):
        raise _misused(argument, value, f"a `{kind.__name__}`{remedy and '; '}{remedy}")
    return value


def _able(argument: str, value: Any, what: str, *methods: str) -> Any:
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise _misused(argument, value, what)
    return value


def _misused(argument: str, value: object, what: str) -> HostMisused:
    return HostMisused(f"`{argument}` takes {what}; it was given a {type_name(value)}")


def _random_boundary() -> str:
    return secrets.token_hex(8)
