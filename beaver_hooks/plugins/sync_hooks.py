"""Calls a plugin's plain hooks, and turns every exception into an error about that plugin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import getattr_static
from itertools import islice
from typing import Any, TypeVar

from beaver_hooks.plugins.registry import Implementation
from beaver_hostspecs import (
    ConfigurationError,
    PluginError,
    PluginFailed,
    PluginRefused,
    PluginTurnedOff,
    PluginUnavailable,
)
from beaver_hostspecs.naming import type_name

T = TypeVar("T")

MOST_OFFERS = 1_000
"""The tools or commands that a plugin may offer; an iterable may have no end."""


@contextmanager
def contained(name: str, doing: str, *, passing: tuple[type[PluginError], ...] = ()) -> Iterator[None]:
    """Turn any exception of a plugin's code into a `PluginFailed` that names the plugin and the failed step.

    Args:
        name: the plugin.
        doing: the failed step, as the rest of the sentence.
        passing: the host's own errors, which are raised unchanged.

    Raises:
        ConfigurationError: unchanged; a setting is wrong, and the host does not start with it.
        PluginUnavailable: the plugin asks to be left out; has the plugin's own reason.
        KeyboardInterrupt: unchanged; it is meant for the process.
    """
    try:
        yield
    except (ConfigurationError, KeyboardInterrupt):
        raise
    except passing:
        raise
    except PluginUnavailable as error:
        # By its type: an error may override `__class__`.
        kind = PluginTurnedOff if issubclass(type(error), PluginTurnedOff) else PluginUnavailable
        raise kind(_reason(error), plugin=name) from error
    except BaseException as error:
        raise PluginFailed(f"plugin `{name}` {doing}: raised {type_name(error)}", plugin=name) from error


def ask(implementation: Implementation | None, arguments: Mapping[str, Any]) -> Any:
    """Return the result of a plain hook; `None` if the plugin does not implement it."""
    if implementation is None:
        return None
    with contained(implementation.member.name, f"failed in `{implementation.hook}`"):
        return implementation.function(**{name: arguments[name] for name in implementation.arguments})


def several(implementation: Implementation | None, kind: type[T]) -> tuple[T, ...]:
    """Return the tools or commands that a plain hook offers, each exactly a `kind` with a `str` as its name."""
    items = _items(implementation, ask(implementation, {}))
    for item in items:
        if type(item) is not kind:
            raise misanswered(implementation, f"a {type_name(item)}", f"{kind.__name__}s")
        if type(name := getattr(item, "name", None)) is not str:
            raise misanswered(implementation, f"a {kind.__name__} whose name is a {type_name(name)}", "one with a str")
    if len(items) > MOST_OFFERS:
        raise misanswered(implementation, f"more than {MOST_OFFERS:,} {kind.__name__}s", "fewer")
    return items


def misanswered(implementation: Implementation | None, answer: str, wanted: str) -> PluginRefused:
    """Return the error that names the result of a hook and the result that it must return."""
    assert implementation is not None  # noqa: S101 - a hook that is not there answers nothing
    name = implementation.member.name
    fault = f"hook `{implementation.hook}` returned {answer}; it must return {wanted}"
    return PluginRefused(f"plugin `{name}` was refused: {fault}", plugin=name)


def _items(implementation: Implementation | None, answer: Any) -> tuple[Any, ...]:
    if implementation is None or answer is None:
        return ()
    with contained(implementation.member.name, f"failed in `{implementation.hook}`"):
        try:
            iterator = iter(answer)
        except TypeError:
            return (answer,)
        return tuple(islice(iterator, MOST_OFFERS + 1))


def _reason(error: PluginUnavailable) -> str:
    """Return the plugin's reason without running more of its code."""
    reason = getattr_static(error, "reason", None)
    return reason if type(reason) is str else "it gave no reason"
