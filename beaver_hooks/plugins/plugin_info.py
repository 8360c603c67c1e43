"""Checks the result of `describe`, so that it cannot run the plugin's code later or fill a turn's context."""

from collections.abc import Iterator
from types import NoneType

import attrs

from beaver_hooks.config import is_section_path
from beaver_hostspecs import CONTRACT_VERSION, Deadlines, PluginInfo, PluginRefused
from beaver_hostspecs.naming import type_name

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


def _refused(name: str, fault: str) -> PluginRefused:
    return PluginRefused(f"plugin `{name}` was refused: {fault}", plugin=name)
