"""The plugins that offer to copy their state: configured for it, and never started."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import attrs

from beaver_hooks.backups.configured_plugins import Answers, Places, Question, folders_of, unasked_folders
from beaver_hooks.config import Config
from beaver_hooks.config.paths import printable
from beaver_hostspecs import BackupReport, BeaverError, PluginFailed, RestoreReport, RestoreRequest, StateBackup
from beaver_hostspecs.freezing import texts
from beaver_hostspecs.naming import type_name

T = TypeVar("T")

NOTHING = StateBackup(write=lambda _: (), check=lambda _: BackupReport(), restore=lambda _: RestoreReport())
"""The backup of a plugin that has nothing worth one."""


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


def plugin_states(config: Config, places: Places, environment: Mapping[str, str]) -> PluginStates:
    """Configure the installed plugins, and return those that offer a backup.

    Raises:
        ConfigurationError: the settings of a plugin are wrong.
    """
    found = Question(
        hook="provide_backup", kind=StateBackup, config=config, places=places, environment=environment
    ).ask()
    states = [PluginState(name=each.name, version=each.version, backup=each.answer or NOTHING) for each in found.given]
    return PluginStates(
        states=tuple(states),
        left_out=tuple(_left_out(places, found)),
        failed=tuple(
            f"The plugin {name} could not be asked for its state: {why}"
            for name, why in found.failed.items()
            if folders_of(places, name)
        ),
    )


def _left_out(places: Places, found: Answers[StateBackup]) -> Iterator[str]:
    """Yield a sentence for each folder of a plugin with files that no plugin copies."""
    for name, folder in unasked_folders(places, found):
        why = f"is off ({found.off[name]})" if name in found.off else "offers no backup, or is not installed"
        yield f"The files in {printable(str(folder))} are not in it: the plugin {name} {why}."
