"""Makes a backup: copies each state, writes the archive, reads it back, and gives it its name."""

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import attrs

from beaver_hooks import __version__
from beaver_hooks.backups.archive import entries_of, extract, read_manifest, write_archive
from beaver_hooks.backups.configured_plugins import PLUGINS, Answers, Places, Question, folders_of, unasked_folders
from beaver_hooks.backups.errors import BackupError, DamagedBackup, full_disk
from beaver_hooks.backups.host_state import HostState
from beaver_hooks.backups.manifest import Manifest, StateEntry, is_safe
from beaver_hooks.config import Config, LoadedConfig
from beaver_hooks.config.paths import printable
from beaver_hostspecs import (
    BACKUP_PARTS,
    BackupReport,
    BeaverError,
    PluginFailed,
    RestoreReport,
    RestoreRequest,
    StateBackup,
)
from beaver_hostspecs.freezing import texts
from beaver_hostspecs.naming import type_name
from beaver_toolkit.files import publish

HOST = "host"
STRAY_SECONDS = 24 * 60 * 60
"""Seconds after which the process that was writing a backup counts as gone."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 40

Waiting = Callable[[str], contextlib.AbstractContextManager[object]]
"""Shows the name of a step while a block runs."""

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


@attrs.frozen(kw_only=True)
class Stored:
    """The stored state that a backup is about.

    Attributes:
        places: its folders.
        host: the state of the host.
        plugins: the plugins that offer to copy their state.
    """

    places: Places
    host: HostState
    plugins: PluginStates

    @classmethod
    def under(cls, loaded: LoadedConfig, places: Places, environment: Mapping[str, str]) -> "Stored":
        """Return the state that a configuration describes, in these folders."""
        host = HostState(folder=places.state, environment=environment, store_secrets=loaded.config.agent.store_secrets)
        return cls(places=places, host=host, plugins=plugin_states(loaded.config, places, environment))

    @property
    def states(self) -> tuple[PluginState, ...]:
        """The states in the order in which they are copied and restored: the trail of the host is the last one."""
        host = PluginState(name=HOST, version=__version__, backup=self.host.functions())
        return (*self.plugins.states, host)


def make_backup(stored: Stored, path: Path, *, parts: tuple[str, ...], now: datetime, waiting: Waiting) -> Manifest:
    """Write a backup that did not exist before, and return its manifest.

    Raises:
        BackupError: nothing is stored, or the archive cannot be written.
        BeaverError: a state cannot be copied; there is no backup then.
    """
    _refuse(stored.places, path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(path.parent)
        work = Path(tempfile.mkdtemp(prefix=".beaver-backup-", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise full_disk(error, path.parent) from error
    try:
        return _made(stored, path, work, parts=parts, now=now, waiting=waiting)
    except OSError as error:
        raise full_disk(error, path) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def backup_name(places: Places, now: datetime) -> str:
    """Return the name of a backup: of the project, with the moment in UTC."""
    project = _UNSAFE.sub("-", places.state.absolute().parent.name).strip("-")[:_LONGEST_NAME] or "state"
    return f"beaver-{project}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.zip"


def backups_in(folder: Path) -> Iterator[tuple[Path, Manifest | DamagedBackup]]:
    """Yield the archives in a folder by their names, each with its manifest or the reason why it has none."""
    for path in sorted(folder.glob("*.zip")):
        try:
            yield path, read_manifest(path)
        except DamagedBackup as error:
            yield path, error


def prune(folder: Path, source: str, keep: int) -> list[Path]:
    """Delete the oldest backups of a state folder, so that `keep` of them stay; return the deleted ones.

    Archives of other state folders, with other names, or without a manifest stay.

    Raises:
        BackupError: one cannot be deleted.
    """
    own = [
        (manifest.made, path)
        for path, manifest in backups_in(folder)
        if isinstance(manifest, Manifest) and manifest.source == source and path.name.startswith("beaver-")
    ]
    gone = [path for _, path in sorted(own)[:-keep]]
    for path in gone:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise BackupError(f"{printable(str(path))} cannot be deleted ({error.strerror}).") from error
    return gone


def check_copies(stored: Stored, folder: Path, manifest: Manifest) -> tuple[StateEntry, ...]:
    """Examine the extracted copies of a backup by the rules of their owners; return what each holds.

    A copy of a plugin that is not configured here is not examined.
    """
    owners = {each.name: each for each in stored.states}
    return tuple(
        _entry(owners[each.name], owners[each.name].check(state_folder(folder, each.name)))
        for each in manifest.states
        if each.name in owners
    )


def state_folder(folder: Path, name: str) -> Path:
    """Return the folder of a state in a backup."""
    return folder / HOST if name == HOST else folder / PLUGINS / name


def _refuse(places: Places, path: Path) -> None:
    for folder in (places.state, places.person):
        if path.resolve().is_relative_to(folder.resolve()):
            raise BackupError(
                f"{printable(str(path))} is inside of the state folder, and would be lost with it; name a file outside"
                f" of {printable(str(folder))}."
            )
    if not (places.state.is_dir() or places.person.is_dir()):
        raise BackupError(f"Nothing is stored yet in {printable(str(places.state))}, so a backup would be empty.")


def _made(
    stored: Stored, path: Path, work: Path, *, parts: tuple[str, ...], now: datetime, waiting: Waiting
) -> Manifest:
    copies, archive, again = work / "copies", work / "archive.zip", work / "again"
    states = tuple(_copied(each, copies, parts, waiting) for each in stored.states)
    states = (*states[:-1], _with_plugins(states[-1], stored.plugins))
    files = entries_of(copies)
    if wrong := [each.path for each in files if not is_safe(each.path)]:
        raise BackupError(f"The file {printable(wrong[0])} has a name that a backup cannot hold; rename it.")
    source = str(stored.places.state.absolute())
    manifest = Manifest(made=now, version=__version__, source=source, parts=parts, states=states, files=files)
    with waiting("Writing the archive"):
        write_archive(archive, copies, manifest)
        shutil.rmtree(copies)
    with waiting("Verifying the archive"):
        _verify(stored, archive, again, manifest)
    if not publish(archive, path):
        raise BackupError(f"The file {printable(str(path))} exists; name another one.")
    return manifest


def _copied(state: PluginState, copies: Path, parts: tuple[str, ...], waiting: Waiting) -> StateEntry:
    """Copy a state, and examine a copy of the copy, because examining may change it."""
    folder, examined = state_folder(copies, state.name), copies.with_name("examined")
    folder.mkdir(mode=0o700, parents=True)
    with waiting(f"Copying the state of {state.name}"):
        notes = state.write(folder)
        for part in set(BACKUP_PARTS) - set(parts):
            shutil.rmtree(folder / part, ignore_errors=True)
    with waiting(f"Examining the state of {state.name}"):
        shutil.copytree(folder, examined)
        report = state.check(examined)
        shutil.rmtree(examined)
    return _entry(state, report, notes)


def _entry(state: PluginState, report: BackupReport, notes: tuple[str, ...] = ()) -> StateEntry:
    return StateEntry(
        name=state.name, version=state.version, held=dict(report.held), notes=notes, problems=report.problems
    )


def _with_plugins(host: StateEntry, plugins: PluginStates) -> StateEntry:
    """Return the entry of the host with the sentences about plugins that are not in the backup."""
    return attrs.evolve(
        host, notes=(*host.notes, *plugins.left_out), problems=(*host.problems, *plugins.failed)
    )  # fmt: skip


def _verify(stored: Stored, archive: Path, folder: Path, manifest: Manifest) -> None:
    """Read the archive back from the disk: every byte, then every row of its databases."""
    folder.mkdir(mode=0o700)
    if extract(archive, folder) != manifest:
        raise DamagedBackup(archive, "was not written as it should be")
    found = {each.name: each.held for each in check_copies(stored, folder, manifest)}
    if found != {each.name: each.held for each in manifest.states}:
        raise DamagedBackup(archive, "was not written as it should be")


def _sweep(folder: Path) -> None:
    """Remove what killed processes left beside the backups."""
    for stray in folder.glob(".beaver-backup-*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - stray.stat().st_mtime >= STRAY_SECONDS:
                shutil.rmtree(stray, ignore_errors=True)
