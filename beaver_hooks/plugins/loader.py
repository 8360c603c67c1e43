"""Loads plugins, each by itself, so that one that cannot be loaded does not affect the others."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs

from beaver_hooks.config.paths import meant_or_known
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.options import Options
from beaver_hooks.plugins.contract_checks import HOOKS, check_info
from beaver_hooks.plugins.entry_points import Rivals, install_command
from beaver_hooks.plugins.hook_calls import Calls, Result
from beaver_hooks.plugins.modes import Plan
from beaver_hooks.plugins.registry import Implementation, Member, Registry
from beaver_hooks.plugins.sync_hooks import ask, contained, misanswered, several
from beaver_hooks.receipts.recorder import Recorder
from beaver_hooks.receipts.reports import HostReport
from beaver_hooks.state_folder import plugin_folder
from beaver_hostspecs import (
    AuditUnavailable,
    Command,
    Deadlines,
    HostNotOpen,
    PluginError,
    PluginFailed,
    PluginInfo,
    PluginMissing,
    PluginRefused,
    PluginTurnedOff,
    PluginUnavailable,
    Setup,
    Tool,
    UnknownPlugin,
)
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

N = TypeVar("N", Tool, Command)

OUTSIDE = "outside"
"""The hook of a report outside turns."""


class Loader:
    """Brings plugins into service and takes them out of it."""

    def __init__(self, *, registry: Registry, recorder: Recorder, calls: Calls, options: Options) -> None:
        self._registry = registry
        self._recorder = recorder
        self._calls = calls
        self._options = options
        self._files = StateFiles(options.state_folder, options.environment)
        # With the `stop` of each: the registry no longer knows an unregistered plugin.
        self._started: dict[Member, Implementation | None] = {}
        self._closed = False

    async def load(self, plan: Plan, points: Mapping[str, "EntryPoint | Rivals"]) -> None:
        """Load the installed plugins that the plan names; raise if a required plugin is missing or cannot be loaded."""
        for name, reason in plan.disabled.items():
            self._recorder.health.out_of_service(name, state="disabled", reason=reason)
        for name in plan.missing:
            raise PluginMissing(_missing(name, plan, points), plugin=name)
        for name in plan.names:
            await self._load(name, points[name], plan)

    async def bring_in(self, name: str, plugin: object, *, fail_closed: bool = False) -> Member:
        """Register, configure and start one plugin object, or raise and leave it unregistered.

        Raises:
            ConfigurationError: its settings are wrong.
            PluginRefused: the name is invalid or taken, or the plugin breaks the contract.
            PluginUnavailable: it asks to be left out.
            PluginFailed: one of its hooks raised.
            HostNotOpen: the host was closed while it started.
        """
        self._registry.check_name(name)
        with self._written_down(name):
            with contained(name, "could not be examined", passing=(PluginRefused,)):
                member = self._registry.add(name, plugin, fail_closed=fail_closed)
            try:
                self._configure(member)
                await self._start(member)
            except BaseException:
                self._registry.discard(member)
                raise
        await self._check_wanted(member)
        if self._recorder.health.loaded(name):
            self._recorder.event("plugin_loaded_again", plugin=name)
        self._forgive(member)
        return member

    async def stop(self, member: Member) -> None:
        """Call the plugin's `stop`, if it was started; a failure is audited."""
        if member not in self._started:
            return
        result = await self._call(self._started.pop(member))
        if result is None:
            return
        if result.category is not None:
            self._recorder.failed(member.name, hook="stop", category=result.category, error=result.error)
        elif not result.call.blocked:
            self._recorder.succeeded(member.name, source="stop")

    async def stop_all(self) -> None:
        """Stop every started plugin, the last one first; a plugin that starts later is stopped at once."""
        self._closed = True
        for member in reversed(tuple(self._started)):
            await self.stop(member)

    async def _load(self, name: str, point: "EntryPoint | Rivals", plan: Plan) -> None:
        """Load one installed plugin; raise only if a required plugin fails, as every failure is recorded."""
        try:
            plugin = self._make(name, point)
            await self.bring_in(name, plugin, fail_closed=name in plan.preset.fail_closed)
        except PluginError as error:
            if name in plan.preset.required:
                raise PluginMissing(_needed(name, plan, str(error)), plugin=name) from error

    def _make(self, name: str, point: "EntryPoint | Rivals") -> object:
        """Import a plugin and make an instance of it for this host."""
        with self._written_down(name):
            self._registry.check_name(name)
            if isinstance(point, Rivals):
                raise PluginRefused(str(point), plugin=name)
            with contained(name, "could not be loaded"):
                factory = point.load()
                return factory()

    @contextmanager
    def _written_down(self, name: str) -> Iterator[None]:
        """Record that a plugin is unavailable or turned off: one event, and the reason in its health."""
        try:
            yield
        except PluginError as error:
            reason = str(error)
            cause = error if error.__cause__ is None else error.__cause__
            off = isinstance(error, PluginTurnedOff)
            self._recorder.health.out_of_service(name, state="disabled" if off else "unavailable", reason=reason)
            event = "plugin_turned_off" if off else "plugin_unavailable"
            facts = {"error": type_name(cause)}
            self._recorder.event(event, facts, plugin=name, loudly=not off, sentence=reason)
            raise

    async def _check_wanted(self, member: Member) -> None:
        """Stop a plugin that was unregistered, or whose host was closed, while it started."""
        if self._registry.holds(member) and not self._closed:
            return
        self._registry.discard(member)
        await self.stop(member)
        if self._closed:
            raise HostNotOpen(f"the host was closed while the plugin `{member.name}` started; it was stopped again")
        raise UnknownPlugin(f"the plugin `{member.name}` was unregistered while it started", plugin=member.name)

    def _forgive(self, member: Member) -> None:
        """Clear earlier faults of hooks that the plugin no longer has: no success could clear them."""
        for source in self._recorder.health[member.name].faults:
            if source in HOOKS and not self._implements(member, source):
                self._recorder.succeeded(member.name, source=source)

    def _configure(self, member: Member) -> None:
        describe, configure = (self._registry.of(member, hook) for hook in ("describe", "configure"))
        if describe is not None:
            member.info = self._info(describe)
        if configure is not None:
            answer = ask(configure, {"setup": self._setup(member)})
            if type(answer) is Deadlines:
                member.info = attrs.evolve(member.info, deadlines=answer)
            elif answer is not None:
                raise misanswered(configure, f"a {type_name(answer)}", "`Deadlines` or nothing")
        member.tools = self._unclaimed(member, "tool", several(self._registry.of(member, "provide_tools"), Tool))
        commands = several(self._registry.of(member, "provide_commands"), Command)
        member.commands = self._unclaimed(member, "command", commands)

    @staticmethod
    def _info(describe: Implementation) -> PluginInfo:
        # Reading a half-made description, or a settings class with a metaclass of its own, runs the plugin's code.
        name, answer = describe.member.name, ask(describe, {})
        with contained(name, "failed in `describe`", passing=(PluginRefused,)):
            return check_info(name, answer)

    def _setup(self, member: Member) -> Setup:
        here = self._options
        state = self._folder(here.state_folder, member.name)
        # An unusable folder is reported once.
        person = state if here.person_folder == here.state_folder else self._folder(here.person_folder, member.name)
        return Setup(
            settings=self._settings(member.name, member.info),
            mode=here.mode,
            explicit=here.config.explicit,
            state_folder=state,
            person_folder=person,
            services=here.services,
            files=self._files,
            reference_tokens=here.settings.reference_tokens,
            report=HostReport(plugin=member.name, hook=OUTSIDE, recorder=self._recorder),
        )

    def _folder(self, state: Path, name: str) -> Path:
        try:
            return plugin_folder(state, name)
        except AuditUnavailable as error:
            wanted = state.absolute() / "plugins" / name
            if not isinstance(error.__cause__, OSError) and not any(each.is_file() for each in wanted.parents):
                # A link, or writable by all users: the plugin's state would go to the wrong place.
                raise PluginUnavailable(str(error), plugin=name) from error
            # The plugin may need no state. If it does, its own writing fails, and it reports that.
            self._recorder.event("plugin_folder_unusable", plugin=name, loudly=True, sentence=str(error))
            return wanted

    def _settings(self, name: str, info: PluginInfo) -> object:
        if info.settings is None:
            return None
        here, path = self._options, info.settings_path or f"plugins.{name}"
        with contained(name, "could not be given its settings"):
            return here.config.settings(info.settings, path, environment=here.environment)

    def _unclaimed(self, member: Member, what: str, offered: tuple[N, ...]) -> tuple[N, ...]:
        """Return the offers whose names are not taken; audit the others."""
        taken = {tool.name: each.name for each in self._registry.members() for tool in each.tools if what == "tool"}
        kept: dict[str, N] = {}
        for each in offered:
            if each.name in taken or each.name in kept:
                facts = {what: each.name, "taken_by": taken.get(each.name, member.name)}
                self._recorder.event(f"{what}_refused", facts, plugin=member.name, loudly=True)
            else:
                kept[each.name] = each
        return tuple(kept.values())

    def _implements(self, member: Member, hook: str) -> bool:
        return self._registry.of(member, hook) is not None

    async def _start(self, member: Member) -> None:
        stop = self._registry.of(member, "stop")
        result = await self._call(self._registry.of(member, "start"))
        if result is not None and isinstance(result.error, PluginUnavailable):
            with contained(member.name, "could not start"):
                raise result.error
        if result is not None and result.category is not None:
            kind = f" {type_name(result.error)}" if result.error is not None else ""
            message = f"plugin `{member.name}` could not start: {result.category}{kind}"
            raise PluginFailed(message, plugin=member.name) from result.error
        self._started[member] = stop

    async def _call(self, implementation: Implementation | None) -> Result | None:
        if implementation is None:
            return None
        (result,) = await self._calls.settle([self._calls.begin_hook(implementation, {})])
        return result if result.value is None else attrs.evolve(result, category="wrong_type")


def _missing(name: str, plan: Plan, installed: Collection[str]) -> str:
    if reason := plan.disabled.get(name):
        return f"the plugin `{name}` is needed{_by(plan)}, but {reason}; remove it from there, or change the mode"
    if command := install_command(name):
        return f"the plugin `{name}` is needed{_by(plan)}, but is not installed; run: {command}"
    return f"no plugin named `{name}` is installed{meant_or_known(name, installed, 'installed plugins')}"


def _needed(name: str, plan: Plan, reason: str) -> str:
    command = install_command(name)
    remedy = f"fix it, or reinstall it with: {command}" if command else "fix it, or reinstall its distribution"
    return f"the plugin `{name}` is needed{_by(plan)}: {reason}; {remedy}"


def _by(plan: Plan) -> str:
    return f" by the memory mode `{plan.mode}`" if plan.mode else ""
