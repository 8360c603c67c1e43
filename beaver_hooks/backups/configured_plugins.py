"""Asks plugins by a plain hook that needs no host: each is configured for it, and never started."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from beaver_hooks.config import Config
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.plugins.contract_checks import check_info
from beaver_hooks.plugins.entry_points import Rivals, installed
from beaver_hooks.plugins.modes import make_plan, preset_of
from beaver_hooks.plugins.registry import Registry
from beaver_hooks.plugins.sync_hooks import ask, contained, misanswered
from beaver_hostspecs import PluginError, PluginInfo, PluginRefused, PluginUnavailable, Setup
from beaver_hostspecs.naming import type_name
from beaver_hostspecs.reports import OutcomeKind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

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
class GivenAnswer(Generic[T]):
    """What a plugin has answered.

    Attributes:
        name: of the plugin.
        version: of the plugin.
        answer: its answer; `None` if it has nothing to offer.
    """

    name: str
    version: str
    answer: T | None


@attrs.frozen(kw_only=True)
class Answers(Generic[T]):
    """The answers of plugins, in the order of registration.

    Attributes:
        given: of the plugins that have the hook.
        without: the plugins that are on and have no such hook.
        off: why other plugins are off, by name.
        failed: why plugins could not be asked, by name.
    """

    given: tuple[GivenAnswer[T], ...]
    without: tuple[str, ...]
    off: Mapping[str, str]
    failed: Mapping[str, str]

    @property
    def names(self) -> frozenset[str]:
        """The plugins that have answered or failed."""
        return frozenset((*(each.name for each in self.given), *self.failed))


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


@attrs.frozen(kw_only=True)
class Question(Generic[T]):
    """A hook that plugins are asked by.

    Attributes:
        hook: its name.
        kind: the type of an answer, unless it is nothing.
        config: the settings of the plugins.
        places: their folders.
        environment: the variables that locate git and hold credentials.
    """

    hook: str
    kind: type[T]
    config: Config
    places: Places
    environment: Mapping[str, str]

    def ask(self) -> Answers[T]:
        """Configure the installed plugins, and return the answers of those that have the hook.

        Raises:
            ConfigurationError: the settings of a plugin are wrong.
        """
        points, config = installed(), self.config
        plan = make_plan(installed=points, preset=preset_of(config), disabled=config.plugins.disabled, mode=config.mode)
        given: list[GivenAnswer[T]] = []
        off, failed = dict(plan.disabled), dict[str, str]()
        for name in plan.names:
            try:
                given += self._answer(name, points[name])
            except PluginUnavailable as error:
                off[name] = str(error)
            except PluginError as error:
                failed[name] = str(error)
        heard = {each.name for each in given} | {*off, *failed}
        without = tuple(name for name in plan.names if name not in heard)
        return Answers(given=tuple(given), without=without, off=off, failed=failed)

    def _answer(self, name: str, point: "EntryPoint | Rivals") -> Iterator[GivenAnswer[T]]:
        """Yield the answer of a plugin that has the hook."""
        if isinstance(point, Rivals):
            raise PluginRefused(str(point), plugin=name)
        registry = Registry()
        with contained(name, "could not be loaded", passing=(PluginRefused,)):
            member = registry.add(name, point.load()())
        describe, configure, offer = (registry.of(member, each) for each in ("describe", "configure", self.hook))
        if offer is None:
            return
        info = member.info if describe is None else check_info(name, ask(describe, {}))
        ask(configure, {"setup": self._setup(name, info)})
        answer = ask(offer, {})
        if answer is not None and type(answer) is not self.kind:
            raise misanswered(offer, f"a {type_name(answer)}", f"`{self.kind.__name__}` or nothing")
        yield GivenAnswer(name=name, version=info.version, answer=answer)

    def _setup(self, name: str, info: PluginInfo) -> Setup:
        settings: object = None
        if info.settings is not None:
            path = info.settings_path or f"plugins.{name}"
            with contained(name, "could not be given its settings"):
                settings = self.config.settings(info.settings, path, environment=self.environment)
        return Setup(
            settings=settings,
            mode=self.config.mode,
            explicit=self.config.explicit,
            state_folder=self.places.state / PLUGINS / name,
            person_folder=self.places.person / PLUGINS / name,
            report=Unheard(),
            files=StateFiles(self.places.state, self.environment),
        )


def unasked_folders(places: Places, found: Answers[T]) -> Iterator[tuple[str, Path]]:
    """Yield name and folder of each plugin with files that has neither answered nor failed."""
    names = {folder.name for root in {places.state, places.person} for folder in (root / PLUGINS).glob("*/")}
    for name in sorted(names - found.names):
        for folder in folders_of(places, name):
            yield name, folder


def folders_of(places: Places, name: str) -> list[Path]:
    """Return the folders of a plugin that hold anything."""
    folders = dict.fromkeys(root / PLUGINS / name for root in (places.state, places.person))
    return [folder for folder in folders if folder.is_dir() and any(folder.iterdir())]
