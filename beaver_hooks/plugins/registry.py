"""The registered plugins, and the order in which their hooks are called."""

from collections.abc import Callable
from typing import Any

import attrs
import pluggy

from beaver_hooks.plugins.contract_checks import HOOKS, accepted_arguments, check_plugin
from beaver_hooks.receipts.recorder import HOST
from beaver_hostspecs import CONTRACT_VERSION, PROJECT, Command, PluginInfo, PluginRefused, Tool, UnknownPlugin, hooks
from beaver_hostspecs.naming import PLUGIN_NAME, type_name

RESERVED = frozenset({HOST, "disabled"})
"""Names with another meaning in health and configuration."""


class _Stand:
    """Stands for a plugin in pluggy: pluggy compares with `==`, which a plugin may override in any way."""

    def __init__(self, methods: dict[str, Callable[..., Any]]) -> None:
        vars(self).update(methods)


@attrs.define(kw_only=True, eq=False)
class Member:
    """One registered plugin.

    Attributes:
        name: its name, everywhere.
        plugin: the object that implements the hooks.
        info: its own description.
        fail_closed: whether its failure in `before_prompt` stops the turn.
        tools: the tools that it offers.
        commands: the commands that it offers.
    """

    name: str
    plugin: object
    info: PluginInfo = attrs.field(factory=lambda: PluginInfo(version="unknown", contract=CONTRACT_VERSION))
    fail_closed: bool = False
    tools: tuple[Tool, ...] = ()
    commands: tuple[Command, ...] = ()


@attrs.frozen(kw_only=True, eq=False)
class Implementation:
    """One plugin's implementation of one hook."""

    hook: str
    member: Member
    function: Callable[..., Any]
    arguments: tuple[str, ...]


class Registry:
    """Registers checked plugins and orders their hooks; pluggy stores the registrations and never calls a hook."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hooks)
        self._members: dict[str, Member] = {}
        self._ordered: dict[str, tuple[Implementation, ...]] = {}

    def check_name(self, name: str) -> None:
        """Raise `PluginRefused` unless a plugin may be registered under `name` now."""
        if type(name) is not str:
            raise PluginRefused(f"the name of a plugin must be a str, and not {type_name(name)}")
        if name in RESERVED or not PLUGIN_NAME.fullmatch(name):
            fault = "is reserved" if name in RESERVED else "is not a valid name; use letters, digits, `-` and `_`"
            raise PluginRefused(f"`{name}` {fault}: the plugin was not registered", plugin=name)
        if name in self._members:
            raise PluginRefused(f"a plugin named `{name}` is registered; unregister it first", plugin=name)

    def add(self, name: str, plugin: object, *, fail_closed: bool = False) -> Member:
        """Register `plugin`, or raise `PluginRefused` and change nothing."""
        self.check_name(name)
        for other in self._members.values():
            if other.plugin is plugin:
                raise PluginRefused(f"this object is registered already, as `{other.name}`", plugin=name)
        stand = _Stand(check_plugin(name, plugin))
        self._manager.register(stand, name)
        self._members[name] = member = Member(name=name, plugin=plugin, fail_closed=fail_closed)
        self._ordered.clear()
        return member

    def remove(self, name: str) -> Member:
        """Unregister a plugin; effective at once."""
        member = self.member(name)
        self.discard(member)
        return member

    def discard(self, member: Member) -> None:
        """Unregister this very plugin, if it is still registered; another plugin of its name stays."""
        if self.holds(member):
            self._manager.unregister(name=member.name)
            del self._members[member.name]
            self._ordered.clear()

    def member(self, name: str) -> Member:
        """Return a registered plugin, or raise `UnknownPlugin`, which lists the registered ones."""
        if type(name) is str and name in self._members:
            return self._members[name]
        known = ", ".join(self._members) or "none"
        said = name if type(name) is str else type_name(name)
        raise UnknownPlugin(f"no plugin named `{said}` is registered; registered: {known}", plugin=said)

    def members(self) -> tuple[Member, ...]:
        """Return the registered plugins in the order of registration."""
        return tuple(self._members.values())

    def holds(self, member: Member) -> bool:
        """Whether this very plugin is registered now, and not another plugin of its name."""
        return self._members.get(member.name) is member

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """Return the implementations of `hook`: first those with `tryfirst`, last those with `trylast`."""
        if hook not in self._ordered:
            self._ordered[hook] = self._order(hook)
        return self._ordered[hook]

    def of(self, member: Member, hook: str) -> Implementation | None:
        """Return one plugin's implementation of `hook`, or `None`."""
        return next((each for each in self.implementations(hook) if each.member is member), None)

    def _order(self, hook: str) -> tuple[Implementation, ...]:
        found = [
            (implementation.trylast - implementation.tryfirst, self._implementation(hook, implementation))
            for implementation in getattr(self._manager.hook, hook).get_hookimpls()
        ]
        names = list(self._members)
        found.sort(key=lambda pair: (pair[0], names.index(pair[1].member.name)))
        return tuple(implementation for _, implementation in found)

    def _implementation(self, hook: str, implementation: pluggy.HookImpl) -> Implementation:
        return Implementation(
            hook=hook,
            member=self._members[implementation.plugin_name],
            function=implementation.function,
            arguments=accepted_arguments(hook, implementation.function),
        )


__all__ = ["HOOKS", "Implementation", "Member", "Registry"]
