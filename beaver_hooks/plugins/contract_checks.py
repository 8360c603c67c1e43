"""Refuses a plugin that breaks the contract, with a sentence that names the plugin, the hook, the fault and the remedy.

pluggy itself accepts most of these faults silently: it never calls a method without a marker, and a wrapper ends before
the coroutine that it wraps has started.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MappingProxyType, MethodType
from typing import Any

from beaver_hooks.config.paths import meant_or_known
from beaver_hostspecs import PROJECT, PluginRefused, hooks
from beaver_hostspecs.naming import type_name

OPTIONS = f"{PROJECT}_impl"
"""The attribute in which pluggy's marker stores its options."""


def _specifications() -> Mapping[str, Callable[..., Any]]:
    marked = f"{PROJECT}_spec"
    return MappingProxyType({name: spec for name, spec in vars(hooks).items() if hasattr(spec, marked)})


HOOKABLE = (FunctionType, MethodType, classmethod, staticmethod)
"""The types of a hook. Reading any other attribute, a property for example, would run the plugin's code."""

HOOKS: Mapping[str, Callable[..., Any]] = _specifications()
"""Every hook of the contract, by name."""


def check_plugin(name: str, plugin: object) -> dict[str, Callable[..., Any]]:
    """Return the marked methods of `plugin` by attribute, or raise `PluginRefused` unless they fit the contract."""
    if inspect.isclass(plugin):
        raise _refused(name, f"a class was given; give an instance: {plugin.__name__}()")
    found: dict[str, str] = {}
    methods: dict[str, Callable[..., Any]] = {}
    for attribute, method, options in _methods(name, plugin):
        if options is None and attribute not in HOOKS:
            continue
        hook = _check_method(name, attribute, method, options)
        other = found.setdefault(hook, attribute)
        if other != attribute:
            raise _refused(name, f"`{other}` and `{attribute}` both implement the hook `{hook}`; keep one of them")
        methods[attribute] = method
    if not found:
        raise _refused(name, "it implements no hook; mark its hook methods with @hookimpl")
    return methods


def _methods(name: str, plugin: object) -> Iterator[tuple[str, Callable[..., Any], Mapping[str, Any] | None]]:
    for attribute in dir(plugin):
        static = inspect.getattr_static(plugin, attribute, None)
        if isinstance(static, HOOKABLE):
            method = getattr(plugin, attribute)
            options = getattr(method, OPTIONS, None)
            yield attribute, method, options if isinstance(options, Mapping) else None
        # A subclass sets an inherited method to `None` to remove it.
        elif static is not None and (attribute in HOOKS or _is_marked(static)):
            raise _refused(name, f"`{attribute}` is a {type_name(static)}; write the hook as a method of the class")


def _is_marked(static: object) -> bool:
    """Whether an object has the marker, which decorators copy from the method that they wrap."""
    return type(inspect.getattr_static(static, OPTIONS, None)) is dict


def _check_method(name: str, attribute: str, method: Callable[..., Any], options: Mapping[str, Any] | None) -> str:
    if options is None:
        raise _refused(name, f"`{attribute}` has the name of a hook, but is not marked with @hookimpl; mark it")
    hook = options.get("specname") or attribute
    if hook not in HOOKS:
        raise _refused(name, f"there is no hook `{hook}`{meant_or_known(hook, HOOKS, 'hooks')}")
    if options.get("wrapper") or options.get("hookwrapper"):
        raise _refused(name, f"hook `{hook}` is a wrapper, which cannot wrap a coroutine; write a plain @hookimpl")
    _check_kind(name, hook, method)
    _check_arguments(name, hook, method)
    return str(hook)


def _check_kind(name: str, hook: str, method: Callable[..., Any]) -> None:
    wanted = inspect.iscoroutinefunction(HOOKS[hook])
    if wanted and not inspect.iscoroutinefunction(method):
        raise _refused(name, f"hook `{hook}` is synchronous; make it `async def {hook}(...)`")
    if not wanted and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)):
        raise _refused(name, f"hook `{hook}` is a coroutine function; make it a plain `def {hook}(...)`")


def _check_arguments(name: str, hook: str, method: Callable[..., Any]) -> None:
    allowed = tuple(inspect.signature(HOOKS[hook]).parameters)
    keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind in keyword and (parameter.name in allowed or parameter.default is not parameter.empty):
            continue
        takes = f"it may take {', '.join(allowed)}" if allowed else "it takes no arguments"
        raise _refused(name, f"hook `{hook}` has an argument `{parameter.name}`; {takes}")


def accepted_arguments(hook: str, method: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the hook's arguments that the method takes."""
    wanted = inspect.signature(method).parameters
    return tuple(argument for argument in inspect.signature(HOOKS[hook]).parameters if argument in wanted)


def _refused(name: str, fault: str) -> PluginRefused:
    return PluginRefused(f"plugin `{name}` was refused: {fault}", plugin=name)
