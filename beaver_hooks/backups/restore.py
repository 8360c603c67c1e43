"""Restores a backup: reads it whole, asks each owner whether its part fits, and only then lets them write."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from beaver_hooks.backups.archive import extract
from beaver_hooks.backups.backup import HOST, PluginState, Stored, Waiting, check_copies, state_folder
from beaver_hooks.backups.errors import BackupError, full_disk
from beaver_hooks.backups.manifest import Manifest, StateEntry
from beaver_hooks.config.paths import printable
from beaver_hooks.state_folder import plugin_folder
from beaver_hostspecs import BACKUP_PARTS, PERSON_PART, BeaverError, RestoreReport, RestoreRequest


@attrs.frozen(kw_only=True)
class Restored:
    """The result of a restore, or of its dry run.

    Attributes:
        manifest: of the backup.
        reports: the results, by the name of the state.
        problems: damage that its copies have, and that they had when the backup was made or before.
        skipped: sentences about states that were not restored.
    """

    manifest: Manifest
    reports: dict[str, RestoreReport]
    problems: tuple[str, ...]
    skipped: tuple[str, ...]


def verify(stored: Stored, path: Path, *, waiting: Waiting) -> tuple[Manifest, tuple[StateEntry, ...]]:
    """Return the manifest of a backup and what its copies hold, after all of it was read.

    Raises:
        DamagedBackup: a byte of it is not as it was written.
    """
    with _extracted(path, waiting) as (folder, manifest), waiting("Examining the copies"):
        return manifest, check_copies(stored, folder, manifest)


def restore(
    stored: Stored, path: Path, *, parts: tuple[str, ...], merge: bool, dry: bool, waiting: Waiting
) -> Restored:
    """Restore the parts of a backup.

    Raises:
        DamagedBackup: a byte of the backup is not as it was written; nothing was restored.
        BackupError: the parts cannot lie in one folder, or it failed halfway; names the restored states.
        BeaverError: an owner refuses its part, for example because state is there; nothing was restored.
    """
    with _extracted(path, waiting) as (folder, manifest):
        if not merge:
            _refuse_one_place(stored, manifest, parts)
        for part in set(BACKUP_PARTS) - set(parts):
            for state in manifest.states:
                shutil.rmtree(state_folder(folder, state.name) / part, ignore_errors=True)
        owners = {each.name: each for each in stored.states}
        chosen = [owners[each.name] for each in manifest.states if each.name in owners and _holds(folder, each)]
        with waiting("Examining the copies"):
            entries = check_copies(stored, folder, manifest)
        reports = {each.name: each.restore(_request(folder, each, merge=merge, dry=True)) for each in chosen}
        if not dry:
            reports = _written(stored, folder, chosen, merge=merge, waiting=waiting)
        return Restored(
            manifest=manifest,
            reports=reports,
            problems=tuple(f"{each.name}: {problem}" for each in entries for problem in each.problems),
            skipped=tuple(_skipped(folder, manifest, owners)),
        )


@contextlib.contextmanager
def _extracted(path: Path, waiting: Waiting) -> Iterator[tuple[Path, Manifest]]:
    try:
        work = Path(tempfile.mkdtemp(prefix="beaver-restore-"))
    except OSError as error:
        raise full_disk(error, Path(tempfile.gettempdir())) from error
    try:
        with waiting("Verifying the archive"):
            manifest = extract(path, work)
        yield work, manifest
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _written(
    stored: Stored, folder: Path, chosen: list[PluginState], *, merge: bool, waiting: Waiting
) -> dict[str, RestoreReport]:
    reports: dict[str, RestoreReport] = {}
    for each in chosen:
        try:
            with waiting(f"Restoring the state of {each.name}"):
                _make_folders(stored, folder, each.name)
                reports[each.name] = each.restore(_request(folder, each, merge=merge, dry=False))
        except (BeaverError, OSError) as error:
            if not reports:
                raise
            raise BackupError(
                f"{str(error).rstrip('.')}. Only this was restored: {', '.join(reports)}; when the cause is mended,"
                " restore the rest with --merge."
            ) from error
    return reports


def _make_folders(stored: Stored, folder: Path, name: str) -> None:
    if name == HOST:
        return
    plugin_folder(stored.places.state, name)
    if (state_folder(folder, name) / PERSON_PART).is_dir():
        plugin_folder(stored.places.person, name)


def _request(folder: Path, state: PluginState, *, merge: bool, dry: bool) -> RestoreRequest:
    return RestoreRequest(folder=state_folder(folder, state.name), merge=merge, dry_run=dry)


def _refuse_one_place(stored: Stored, manifest: Manifest, parts: tuple[str, ...]) -> None:
    """Refuse to put the files of a project and those of the person into one folder: both have the same names."""
    found = {part for each in manifest.files for part in BACKUP_PARTS if f"/{part}/" in each.path}
    if stored.places.are_one and found & set(parts) == set(BACKUP_PARTS):
        raise BackupError(
            f"The backup holds the state of a project and that of its user, and"
            f" {printable(str(stored.places.state))} is one folder for both; go to a folder with a `.beaver` of its own"
            " (`beaver init` makes one), or name one of them with --only."
        )


def _holds(folder: Path, entry: StateEntry) -> bool:
    there = state_folder(folder, entry.name)
    return there.is_dir() and any(path.is_file() for path in there.rglob("*"))


def _skipped(folder: Path, manifest: Manifest, owners: dict[str, PluginState]) -> Iterator[str]:
    for each in manifest.states:
        if each.name not in owners and _holds(folder, each):
            yield (
                f"The state of {printable(each.name)} was not restored: that plugin is not installed, or is off;"
                " install it or turn it on, and restore with --merge."
            )
