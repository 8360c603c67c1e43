"""Reads a plugin as a host does: which methods are its hooks, and whether they are of the right kind."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from beaver_hostspecs import hooks
from beaver_hostspecs.markers import PROJECT

OPTIONS = f"{PROJECT}_impl"
"""The attribute in which the marker leaves its options."""

HOOKS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: spec for name, spec in vars(hooks).items() if hasattr(spec, f"{PROJECT}_spec")}
)
"""Every hook of the contract, by name."""


def hooks_of(plugin: object) -> dict[str, Callable[..., Any]]:
    """Return the methods of a plugin that are marked as hooks, by the name of the hook."""
    return {hook: method for hook, _, method in _marked(plugin) if hook in HOOKS}


def faults_of(plugin: object) -> list[str]:
    """Return in sentences why a host would refuse a plugin; an empty list if it would not."""
    if inspect.isclass(plugin):
        return ["it is a class; a host registers instances"]
    marked = [*_marked(plugin)]
    names = [hook for hook, _, _ in marked]
    found = [fault for hook, attribute, method in marked for fault in _faults(hook, attribute, method)]
    found += [f"two methods implement the hook `{hook}`" for hook in sorted(set(names)) if names.count(hook) > 1]
    found += [f"`{name}` has the name of a hook and no marker" for name in _unmarked(plugin)]
    return found if marked else [*found, "it implements no hook"]


def wanted_by(hook: str, method: Callable[..., Any]) -> tuple[str, ...]:
    """Return which of the arguments of a hook the method takes."""
    takes = inspect.signature(method).parameters
    return tuple(name for name in inspect.signature(HOOKS[hook]).parameters if name in takes)


def _methods(plugin: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(plugin):
        static = inspect.getattr_static(plugin, name, None)
        # A property would run the plugin's code when it is read.
        if inspect.isroutine(static) or isinstance(static, classmethod | staticmethod):
            yield name, getattr(plugin, name)


def _marked(plugin: object) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    for name, method in _methods(plugin):
        options = getattr(method, OPTIONS, None)
        if isinstance(options, Mapping):
            yield options.get("specname") or name, name, method


def _unmarked(plugin: object) -> list[str]:
    marked = {name for _, name, _ in _marked(plugin)}
    static = {name: inspect.getattr_static(plugin, name, None) for name in HOOKS}
    return [name for name, value in static.items() if value is not None and name not in marked]


def _faults(hook: str, attribute: str, method: Callable[..., Any]) -> Iterator[str]:
    if hook not in HOOKS:
        yield f"there is no hook `{hook}`"
        return
    options = getattr(method, OPTIONS)
    if options.get("wrapper") or options.get("hookwrapper"):
        yield f"`{attribute}` is a wrapper"
    asynchronous = inspect.iscoroutinefunction(HOOKS[hook])
    if asynchronous != inspect.iscoroutinefunction(method):
        yield f"`{attribute}` is to be {'a coroutine' if asynchronous else 'a plain'} function"
    for parameter in inspect.signature(method).parameters.values():
        if not _may_take(hook, parameter):
            yield f"`{attribute}` takes `{parameter.name}`, which the hook does not give"


def _may_take(hook: str, parameter: inspect.Parameter) -> bool:
    if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        return False
    given = parameter.name in inspect.signature(HOOKS[hook]).parameters
    return given or parameter.default is not inspect.Parameter.empty
