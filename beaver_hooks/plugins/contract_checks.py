"""Refuses a plugin that breaks the contract, with a sentence that names the plugin, the hook, the fault and the remedy.

pluggy itself accepts most of these faults silently: it never calls a method without a marker, and a wrapper ends before
the coroutine that it wraps has started.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MappingProxyType, MethodType, NoneType
from typing import Any

import attrs

from beaver_hooks.config import is_section_path
from beaver_hooks.config.paths import meant_or_known
from beaver_hostspecs import CONTRACT_VERSION, PROJECT, Deadlines, PluginInfo, PluginRefused, hooks
from beaver_hostspecs.naming import type_name

OPTIONS = f"{PROJECT}_impl"
"""The attribute in which pluggy's marker stores its options."""

MOST_RULES = 10
"""The rules that a plugin may have; they are in every system prompt."""

LONGEST_RULE = 4_000
"""The characters that a rule may have."""

KINDS: dict[str, tuple[type, ...]] = {
    "version": (str,),
    "contract": (str,),
    "summary": (str,),
    "settings_path": (str, NoneType),
    "rules": (tuple,),
    "deadlines": (Deadlines,),
}
"""The exact types of the fields: a subclass could run the plugin's code when it is read."""


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


def check_info(name: str, info: object) -> PluginInfo:
    """Return a copy of the result of `describe`, or raise `PluginRefused`."""
    if type(info) is not PluginInfo:
        raise _refused(name, f"hook `describe` returned {type_name(info)}; it must return a PluginInfo")
    fault = next(_faults(info), None)
    if fault is not None:
        raise _refused(name, fault)
    return attrs.evolve(info, deadlines=attrs.evolve(info.deadlines))


def _faults(info: PluginInfo) -> Iterator[str]:
    """Yield the faults; the caller stops at the first one, so no field of a wrong type is read further."""
    for field, kinds in KINDS.items():
        value = getattr(info, field, None)
        if type(value) not in kinds:
            remedy = ' (use a text: contract="1.0")' if field == "contract" else ""
            yield f"`{field}` of its PluginInfo is a {type_name(value)}; it must be a {kinds[0].__name__}{remedy}"
    yield from _contract_faults(info.contract)
    yield from _rule_faults(info.rules)
    yield from _deadline_faults(info.deadlines)
    yield from _settings_faults(info)


def _contract_faults(contract: str) -> Iterator[str]:
    if contract.partition(".")[0] != CONTRACT_VERSION.partition(".")[0]:
        yield (
            f"it needs contract {contract}, and this host has contract {CONTRACT_VERSION}; "
            "install a version of the plugin for this contract"
        )


def _rule_faults(rules: tuple[object, ...]) -> Iterator[str]:
    if len(rules) > MOST_RULES:
        yield f"it has {len(rules)} rules; at most {MOST_RULES} fit in the system prompt"
    for rule in rules:
        if type(rule) is not str:
            yield f"one of its rules is a {type_name(rule)}; it must be a str"
        elif len(rule) > LONGEST_RULE:
            yield f"one of its rules has {len(rule):,} characters; at most {LONGEST_RULE:,} fit in the system prompt"


def _deadline_faults(deadlines: Deadlines) -> Iterator[str]:
    for field in attrs.fields(Deadlines):
        seconds = getattr(deadlines, field.name, None)
        if seconds is not None and type(seconds) not in (int, float):
            yield f"its deadline for `{field.name}` is a {type_name(seconds)}; it must be a number of seconds"


def _settings_faults(info: PluginInfo) -> Iterator[str]:
    settings = getattr(info, "settings", None)
    if settings is not None and not (isinstance(settings, type) and attrs.has(settings)):
        yield "its `settings` is not an attrs class; declare one with @attrs.frozen"
    path = info.settings_path
    if path is not None and not is_section_path(path):
        yield "its `settings_path` is not a section of the configuration; write `memory.<name>` or `plugins.<name>`"
