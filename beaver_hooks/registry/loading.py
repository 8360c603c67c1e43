"""Loads plugins: each by itself, so that one that cannot be loaded takes nobody with it."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from beaver_hooks.audit.state_folder import plugin_folder
from beaver_hooks.calls.calls import Calls, Result
from beaver_hooks.config import Config, structure
from beaver_hooks.record.recorder import Recorder
from beaver_hooks.record.reports import HostReport
from beaver_hooks.registry.catalog import install_command
from beaver_hooks.registry.checks import HOOKS, check_info
from beaver_hooks.registry.plan import Plan
from beaver_hooks.registry.registry import Implementation, Member, Registry
from beaver_hostspecs import (
    AuditUnavailable,
    Command,
    ConfigurationError,
    PluginFailed,
    PluginInfo,
    PluginMissing,
    PluginRefused,
    PluginUnavailable,
    Services,
    Setup,
    Tool,
)
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

OUTSIDE = "outside"
"""What a report outside turns gives as its hook."""


@attrs.frozen(kw_only=True)
class Surroundings:
    """What every plugin of a host is set up with."""

    config: Config
    environment: Mapping[str, str]
    mode: str | None
    explicit: bool
    state_folder: Path
    services: Services


class Loader:
    """Brings plugins into service and takes them out of it."""

    def __init__(
        self, *, registry: Registry, recorder: Recorder, calls: Calls, surroundings: Surroundings,
        seconds: Callable[[Member, str], float],
    ) -> None:  # fmt: skip
        self._registry = registry
        self._recorder = recorder
        self._calls = calls
        self._surroundings = surroundings
        self._seconds = seconds
        # With the `stop` of each: the registry knows a plugin no more once it is unregistered.
        self._started: dict[Member, Implementation | None] = {}

    async def load(self, plan: Plan, points: Mapping[str, "EntryPoint"]) -> None:
        """Load what the plan names; a required plugin that cannot be had fails loading."""
        for name, reason in plan.disabled.items():
            self._recorder.health.out_of_service(name, state="disabled", reason=reason)
        for name in plan.missing:
            raise PluginMissing(_missing(name, plan), plugin=name)
        for name in plan.names:
            await self._load(name, points[name], plan)

    async def bring_in(self, name: str, plugin: object, *, fail_closed: bool = False) -> Member:
        """Register, configure and start one plugin object, or raise and leave nothing of it."""
        member = self._registry.add(name, plugin, fail_closed=fail_closed)
        try:
            self._configure(member)
            await self._start(member)
        except BaseException:
            self._registry.remove(name)
            raise
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
        """Stop every started plugin, the last one first."""
        for member in reversed(tuple(self._started)):
            await self.stop(member)

    async def _load(self, name: str, point: "EntryPoint", plan: Plan) -> None:
        try:
            factory = point.load()
            await self.bring_in(name, factory(), fail_closed=name in plan.preset.fail_closed)
        except (ConfigurationError, KeyboardInterrupt):
            raise
        except PluginUnavailable as error:
            self._leave_out(name, error.reason, error, plan)
        except (PluginRefused, PluginFailed) as error:
            self._leave_out(name, str(error), error, plan)
        except BaseException as error:
            if _is_cancellation_of_ours(error):
                raise
            self._leave_out(name, f"it could not be loaded ({type_name(error)})", error, plan)

    def _forgive(self, member: Member) -> None:
        """Let go of earlier faults in hooks that the plugin no longer has: no success could clear them."""
        for source in self._recorder.health[member.name].faults:
            if source in HOOKS and not self._implements(member, source):
                self._recorder.succeeded(member.name, source=source)

    def _leave_out(self, name: str, reason: str, error: BaseException, plan: Plan) -> None:
        """Audit and warn once; for a required plugin, fail loading."""
        self._recorder.health.out_of_service(name, state="unavailable", reason=reason)
        facts = {"reason": reason, "error": type_name(error)}
        self._recorder.event("plugin_unavailable", facts, plugin=name, loudly=True)
        if name in plan.preset.required:
            raise PluginMissing(
                f"the plugin `{name}` is needed{_by(plan)}: {reason}; mend it, or reinstall it with: "
                f"{install_command(name)}",
                plugin=name,
            ) from error

    def _configure(self, member: Member) -> None:
        if self._implements(member, "describe"):
            member.info = check_info(member.name, self._ask(member, "describe"))
        if self._implements(member, "configure"):
            answer = self._ask(member, "configure", setup=self._setup(member))
            if answer is not None:
                raise _misanswered(member, "configure", answer, "nothing")
        member.tools = self._tools(member, self._several(member, "provide_tools", Tool))
        member.commands = self._several(member, "provide_commands", Command)

    def _setup(self, member: Member) -> Setup:
        here = self._surroundings
        return Setup(
            settings=self._settings(member.name, member.info),
            mode=here.mode,
            explicit=here.explicit,
            state_folder=self._folder(member.name),
            services=here.services,
            report=HostReport(plugin=member.name, hook=OUTSIDE, recorder=self._recorder),
        )

    def _folder(self, name: str) -> Path:
        state = self._surroundings.state_folder.absolute()
        try:
            return plugin_folder(state, name)
        except AuditUnavailable as error:
            wanted = state / "plugins" / name
            if not isinstance(error.__cause__, OSError) and not any(each.is_file() for each in wanted.parents):
                # A link, or open to anybody: what is written there would go astray.
                raise PluginUnavailable(str(error), plugin=name) from error
            # It may need no state. If it does, its own writing fails, and it says so.
            self._recorder.event("plugin_folder_unusable", {"reason": str(error)}, plugin=name, loudly=True)
            return wanted

    def _settings(self, name: str, info: PluginInfo) -> object:
        if info.settings is None:
            return None
        path = info.settings_path or f"plugins.{name}"
        section = self._surroundings.config.section(path) or {}
        return structure(info.settings, section, path, environment=self._surroundings.environment)

    def _several(self, member: Member, hook: str, kind: type[T]) -> tuple[T, ...]:
        answer = self._ask(member, hook) if self._implements(member, hook) else None
        try:
            items = () if answer is None else tuple(answer)
        except TypeError:
            items = (answer,)
        for item in items:
            if not isinstance(item, kind):
                raise _misanswered(member, hook, item, f"{kind.__name__}s")
        return items

    def _tools(self, member: Member, offered: tuple[Tool, ...]) -> tuple[Tool, ...]:
        taken = {tool.name: other.name for other in self._registry.members() for tool in other.tools}
        kept: dict[str, Tool] = {}
        for tool in offered:
            if tool.name in taken or tool.name in kept:
                facts = {"tool": tool.name, "taken_by": taken.get(tool.name, member.name)}
                self._recorder.event("tool_refused", facts, plugin=member.name, loudly=True)
            else:
                kept[tool.name] = tool
        return tuple(kept.values())

    def _implements(self, member: Member, hook: str) -> bool:
        return self._registry.of(member, hook) is not None

    def _ask(self, member: Member, hook: str, **arguments: object) -> Any:
        implementation = self._registry.of(member, hook)
        assert implementation is not None  # noqa: S101 - every caller has asked `_implements`
        return implementation.function(**{name: arguments[name] for name in implementation.arguments})

    async def _start(self, member: Member) -> None:
        result = await self._call(self._registry.of(member, "start"))
        if result is not None and result.category is not None:
            kind = f", {type_name(result.error)}" if result.error else ""
            raise PluginFailed(f"it could not start ({result.category}{kind})", plugin=member.name)
        self._started[member] = self._registry.of(member, "stop")

    async def _call(self, implementation: Implementation | None) -> Result | None:
        if implementation is None:
            return None
        member, hook = implementation.member, implementation.hook
        report = HostReport(plugin=member.name, hook=hook, recorder=self._recorder)
        call = self._calls.begin(implementation, {}, report, seconds=self._seconds(member, hook))
        (result,) = await self._calls.settle([call])
        return result if result.value is None else attrs.evolve(result, category="wrong_type")


def _is_cancellation_of_ours(error: BaseException) -> bool:
    """Whether loading itself is being cancelled, rather than a factory raising `CancelledError` of its own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _misanswered(member: Member, hook: str, answer: object, wanted: str) -> PluginRefused:
    fault = f"hook `{hook}` returned a {type_name(answer)}; it must return {wanted}"
    return PluginRefused(f"plugin `{member.name}` was refused: {fault}", plugin=member.name)


def _missing(name: str, plan: Plan) -> str:
    if reason := plan.disabled.get(name):
        return f"the plugin `{name}` is needed{_by(plan)}, but {reason}; take it out of there or change the mode"
    return f"the plugin `{name}` is needed{_by(plan)} and not installed; run: {install_command(name)}"


def _by(plan: Plan) -> str:
    return f" by the memory mode `{plan.mode}`" if plan.mode else ""
