"""The plugins that offer to copy their state: configured for it, and never started."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs

from beaver_hooks.config import Config
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.plugins.entry_points import Rivals, installed
from beaver_hooks.plugins.modes import preset_of
from beaver_hooks.plugins.plan import make_plan
from beaver_hooks.plugins.plugin_info import check_info
from beaver_hooks.plugins.registry import Registry
from beaver_hooks.plugins.sync_hooks import ask, contained, misanswered
from beaver_hostspecs import (
    BackupReport,
    BeaverError,
    PluginError,
    PluginFailed,
    PluginInfo,
    PluginRefused,
    PluginUnavailable,
    RestoreReport,
    RestoreRequest,
    Setup,
    StateBackup,
)
from beaver_hostspecs.freezing import texts
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.reports import OutcomeKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

PLUGINS = "plugins"

NOTHING = StateBackup(write=lambda _: (), check=lambda _: BackupReport(), restore=lambda _: RestoreReport())
"""The backup of a plugin that has nothing worth one."""


@attrs.frozen(kw_only=True)
class Places:
    """The folders of a backup's state.

    Attributes:
        state: the state folder.
        person: the folder of the data that belong to the person; may be the same.
    """

    state: Path
    person: Path

    @property
    def are_one(self) -> bool:
        """Whether both are one folder."""
        return os.path.realpath(self.state) == os.path.realpath(self.person)


@attrs.frozen(kw_only=True)
class PluginState:
    """A plugin that offers to copy its state.

    Each method raises the errors of the plugin that name a remedy, and `PluginFailed` for any other error and for an
    answer of another type.

    Attributes:
        name: of the plugin.
        version: of the plugin.
        backup: copies its state and brings it back.
    """

    name: str
    version: str
    backup: StateBackup

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write a copy of the state; return sentences about data that is not in it."""
        return self._answer("copy its state", tuple, lambda: texts(self.backup.write(folder)))

    def check(self, folder: Path) -> BackupReport:
        """Examine a copy."""
        return self._answer("examine its copy", BackupReport, lambda: self.backup.check(folder))

    def restore(self, request: RestoreRequest) -> RestoreReport:
        """Bring a copy back."""
        return self._answer("restore its state", RestoreReport, lambda: self.backup.restore(request))

    def _answer(self, doing: str, kind: type[T], call: Callable[[], object]) -> T:
        try:
            answer = call()
        except (BeaverError, OSError):
            raise
        except Exception as error:
            raise self._failed(doing, f"raised {type_name(error)}") from error
        if type(answer) is not kind:
            raise self._failed(doing, f"returned a {type_name(answer)}")
        return answer

    def _failed(self, doing: str, what: str) -> PluginFailed:
        return PluginFailed(f"the plugin `{self.name}` could not {doing}: it {what}; report this", plugin=self.name)


@attrs.frozen(kw_only=True)
class PluginStates:
    """The plugins that offer a backup, in the order of registration.

    Attributes:
        states: the plugins.
        left_out: sentences about other plugins with files.
        failed: sentences about plugins that should offer one, and failed.
    """

    states: tuple[PluginState, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...]


class Unheard:
    """The report of a plugin that serves no turns: nothing records what it says."""

    def remaining(self) -> float:
        """Return that there is no deadline."""
        return math.inf

    def event(self, name: str, /, **facts: object) -> None:
        """Ignore an event."""

    def candidates(self, scored: Iterable[tuple[str, float | None]], /) -> None:
        """Ignore candidates."""

    def decision(self, gate: str, verdict: str, reason: str, /) -> None:
        """Ignore a decision."""

    def outcome(self, plane: str, kind: OutcomeKind | str, /, **facts: object) -> None:
        """Ignore an outcome."""

    def clipped(self, what: str, shown: int, total: int, /) -> None:
        """Ignore a cut."""

    def notice(self, text: str, /) -> None:
        """Ignore a notice."""

    def degraded(self, category: str, /) -> None:
        """Ignore a fault."""

    def recovered(self) -> None:
        """Ignore the end of a fault."""


def plugin_states(config: Config, places: Places, environment: Mapping[str, str]) -> PluginStates:
    """Configure the installed plugins, and return those that offer a backup.

    Raises:
        ConfigurationError: the settings of a plugin are wrong.
    """
    points = installed()
    plan = make_plan(installed=points, preset=preset_of(config), disabled=config.plugins.disabled, mode=config.mode)
    states: list[PluginState] = []
    off, failed = dict(plan.disabled), dict[str, str]()
    for name in plan.names:
        try:
            states += _state(name, points[name], config, places, environment)
        except PluginUnavailable as error:
            off[name] = str(error)
        except PluginError as error:
            failed[name] = str(error)
    covered = {each.name for each in states} | failed.keys()
    return PluginStates(
        states=tuple(states),
        left_out=tuple(_left_out(places, covered, off)),
        failed=tuple(
            f"The plugin {name} could not be asked for its state: {why}"
            for name, why in failed.items()
            if _folders(places, name)
        ),
    )


def _state(
    name: str, point: "EntryPoint | Rivals", config: Config, places: Places, environment: Mapping[str, str]
) -> Iterator[PluginState]:
    """Yield a plugin that offers a backup."""
    if isinstance(point, Rivals):
        raise PluginRefused(str(point), plugin=name)
    registry = Registry()
    with contained(name, "could not be loaded", passing=(PluginRefused,)):
        member = registry.add(name, point.load()())
    describe, configure, offer = (registry.of(member, hook) for hook in ("describe", "configure", "provide_backup"))
    if offer is None:
        return
    info = member.info if describe is None else check_info(name, ask(describe, {}))
    ask(configure, {"setup": _setup(name, info, config, places, environment)})
    answer = ask(offer, {})
    if answer is not None and type(answer) is not StateBackup:
        raise misanswered(offer, f"a {type_name(answer)}", "`StateBackup` or nothing")
    yield PluginState(name=name, version=info.version, backup=answer or NOTHING)


def _setup(name: str, info: PluginInfo, config: Config, places: Places, environment: Mapping[str, str]) -> Setup:
    settings: object = None
    if info.settings is not None:
        with contained(name, "could not be given its settings"):
            settings = config.settings(info.settings, info.settings_path or f"plugins.{name}", environment=environment)
    return Setup(
        settings=settings,
        mode=config.mode,
        explicit=config.explicit,
        state_folder=places.state / PLUGINS / name,
        person_folder=places.person / PLUGINS / name,
        report=Unheard(),
        files=StateFiles(places.state, environment),
    )


def _left_out(places: Places, covered: set[str], off: Mapping[str, str]) -> Iterable[str]:
    """Yield a sentence for each folder of a plugin with files that no plugin copies."""
    names = {folder.name for root in {places.state, places.person} for folder in (root / PLUGINS).glob("*/")}
    for name in sorted(names - covered):
        for folder in _folders(places, name):
            why = f"is off ({off[name]})" if name in off else "offers no backup, or is not installed"
            yield f"The files in {printable(str(folder))} are not in it: the plugin {name} {why}."


def _folders(places: Places, name: str) -> list[Path]:
    folders = dict.fromkeys(root / PLUGINS / name for root in (places.state, places.person))
    return [folder for folder in folders if folder.is_dir() and any(folder.iterdir())]
