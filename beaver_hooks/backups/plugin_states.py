"""The plugins that offer to copy their state: configured for it, and never started."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

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
from beaver_hostspecs import PluginError, PluginRefused, PluginTurnedOff, Setup, StateBackup
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.reports import OutcomeKind

PLUGINS = "plugins"


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

    Attributes:
        name: of the plugin.
        version: of the plugin.
        backup: copies its state and brings it back.
    """

    name: str
    version: str
    backup: StateBackup


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
    off: dict[str, str] = dict(plan.disabled)
    failed: dict[str, str] = {}
    silent: set[str] = set()
    for name in plan.names:
        try:
            found = _state(name, points[name], config, places, environment)
        except PluginTurnedOff as error:
            off[name] = str(error)
        except PluginError as error:
            failed[name] = str(error)
        else:
            states += [found] if isinstance(found, PluginState) else []
            silent |= {name} if found is None else set()
    covered = {each.name for each in states} | silent
    return PluginStates(
        states=tuple(states),
        left_out=tuple(_left_out(places, covered | failed.keys(), off)),
        failed=tuple(f"The plugin {name} could not be asked for its state: {why}" for name, why in failed.items()
                     if _folders(places, name)),
    )  # fmt: skip


def _state(
    name: str, point: object, config: Config, places: Places, environment: Mapping[str, str]
) -> "PluginState | bool | None":
    """Return a plugin with its backup; `None` if it has nothing to copy, and `False` if it offers none."""
    if isinstance(point, Rivals):
        raise PluginRefused(str(point), plugin=name)
    registry = Registry()
    with contained(name, "could not be loaded", passing=(PluginRefused,)):
        member = registry.add(name, point.load()())  # type: ignore[attr-defined]
    describe, configure, offer = (registry.of(member, hook) for hook in ("describe", "configure", "provide_backup"))
    info = check_info(name, ask(describe, {})) if describe else member.info
    if offer is None:
        return False
    settings: object = None
    if info.settings is not None:
        with contained(name, "could not be given its settings"):
            settings = config.settings(info.settings, info.settings_path or f"plugins.{name}", environment=environment)
    setup = Setup(
        settings=settings,
        mode=config.mode,
        explicit=config.explicit,
        state_folder=places.state / PLUGINS / name,
        person_folder=places.person / PLUGINS / name,
        report=Unheard(),
        files=StateFiles(places.state, environment),
    )
    ask(configure, {"setup": setup})
    answer = ask(offer, {})
    if answer is None:
        return None
    if type(answer) is not StateBackup:
        raise misanswered(offer, f"a {type_name(answer)}", "`StateBackup` or nothing")
    return PluginState(name=name, version=info.version, backup=answer)


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
