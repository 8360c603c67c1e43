"""`beaver backup`: makes a backup, verifies one, lists those of a folder."""

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from beaver_hooks.backups.backup import Stored, backup_name, backups_in, make_backup, prune
from beaver_hooks.backups.configured_plugins import Places
from beaver_hooks.backups.manifest import Manifest, StateEntry
from beaver_hooks.backups.restore import verify
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.terminal import counted, moment, show, waiting
from beaver_hooks.config.locations import home_folder
from beaver_hooks.config.paths import printable
from beaver_hostspecs import BACKUP_PARTS

FOLDER = "beaver-backups"
"""The default folder of backups, in the home directory: a backup beside the state would be lost with it."""

CREATE = "create"
FORGOTTEN = "A backup still holds what was forgotten after it was made; delete it to erase that, too."

file_type = click.Path(dir_okay=False, path_type=Path)
folder_type = click.Path(file_okay=False, path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
only_option = click.option(
    "--only", type=click.Choice(BACKUP_PARTS), help="Only the part of this project, or that of your own folder."
)


class BackupGroup(click.Group):
    """The commands of backups; words that begin with none of them are those of `create`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the name of the command `create` if the user leaves it out."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [CREATE, *args]
        return super().parse_args(ctx, args)


@click.group(name="backup", cls=BackupGroup)
def command() -> None:
    """Copy memories, conversations and the audit trail into one verified file.

    \b
    beaver backup                          a new file in ~/beaver-backups
    beaver backup FILE                     this file, which must not exist
    beaver backup --to FOLDER --keep 14    a new file there; the newest 14 stay

    Agents may run meanwhile: each database is copied as it was at one moment. `create` is the command unless you name
    another one.
    """  # noqa: D301 - click wants the character


@command.command(name=CREATE)
@click.argument("file", type=file_type, required=False)
@click.option("--to", "folder", metavar="FOLDER", type=folder_type, help="The folder of the new file.")
@click.option("--keep", type=click.IntRange(min=1), help="Keep so many backups of this state there, the newest.")
@only_option
@json_option
@common
@click.pass_context
def create(
    ctx: click.Context, *, file: Path | None, folder: Path | None, keep: int | None, only: str | None,
    as_json: bool, config: Path | None,
) -> None:  # fmt: skip
    """Make a backup: memories with ids and histories, conversations, curated files, the audit trail with its key.

    It is verified after it was written: read from the disk, byte by byte and row by row. Only you can read it. It holds
    no configuration and no embedding model. The exit code is 1 if the stored state is damaged; the backup is kept then,
    and no older one is deleted.
    """
    if file is not None and (folder is not None or keep is not None):
        raise click.UsageError("Name a FILE, or a folder with --to and --keep.")
    loaded = configured(config)
    places, now = Places(state=loaded.state_folder, person=loaded.person_folder), datetime.now(UTC)
    path = file or (folder or home_folder(os.environ) / FOLDER) / backup_name(places, now)
    if os.path.lexists(path):
        raise click.UsageError(f"The file {printable(str(path))} exists; name another one.")
    stored = Stored.under(loaded, places, os.environ)
    manifest = make_backup(stored, path.absolute(), parts=parts_of(only), now=now, waiting=step)
    gone = prune(path.absolute().parent, manifest.source, keep) if keep and not manifest.problems else []
    if as_json:
        say_json(
            file=str(path.absolute()), bytes=path.stat().st_size, deleted=[str(each) for each in gone],
            **plain(manifest, manifest.states),
        )  # fmt: skip
    else:
        show(f"Backed up to {path} ({_size(path)}), and verified.")
        tell_manifest(manifest, manifest.states)
        if gone:
            show(f"Deleted {counted(len(gone), 'older backup')}.")
    if manifest.problems:
        ctx.exit(FOUND)


@command.command(name="verify")
@click.argument("file", type=file_type)
@json_option
@common
@click.pass_context
def verify_command(ctx: click.Context, *, file: Path, as_json: bool, config: Path | None) -> None:
    """Read a backup whole: every byte by its hash, every database by its own rules.

    The exit code is 5 if a byte is not as it was written, and 1 if the state was damaged when the backup was made.
    """
    loaded = configured(config)
    places = Places(state=loaded.state_folder, person=loaded.person_folder)
    manifest, states = verify(Stored.under(loaded, places, os.environ), file, waiting=step)
    if as_json:
        say_json(file=str(file.absolute()), bytes=file.stat().st_size, **plain(manifest, states))
    else:
        show(f"{file} is whole.")
        tell_manifest(manifest, states)
    if manifest.problems or any(each.problems for each in states):
        ctx.exit(FOUND)


@command.command(name="list")
@click.argument("folder", type=folder_type, required=False)
@json_option
@common
def list_command(*, folder: Path | None, as_json: bool, config: Path | None) -> None:  # noqa: ARG001 - of all commands
    """List the backups in a folder, ~/beaver-backups unless given. Their content is not verified."""
    place = folder or home_folder(os.environ) / FOLDER
    found = list(backups_in(place))
    if as_json:
        say_json(backups=[_listed(path, each) for path, each in found])
    elif not found:
        show(f"There are no backups in {printable(str(place))}.")
    else:
        for path, each in found:
            show(_line(path, each))
        show(FORGOTTEN)


def parts_of(only: str | None) -> tuple[str, ...]:
    """Return the parts that the option `--only` chooses."""
    return BACKUP_PARTS if only is None else (only,)


@contextlib.contextmanager
def step(text: str) -> Any:
    """Show the name of a step on a terminal while a block runs."""
    with waiting(text):
        yield


def say_json(**fields: Any) -> None:
    """Print one JSON object."""
    show(json.dumps(fields))


def plain(manifest: Manifest, states: tuple[StateEntry, ...]) -> dict[str, Any]:
    """Return what a backup holds as plain data."""
    return {
        "made": manifest.made.isoformat(),
        "version": manifest.version,
        "source": manifest.source,
        "parts": list(manifest.parts),
        "held": {each.name: dict(each.held) for each in states},
        "notes": list(manifest.notes),
        "problems": problems_of(manifest, states),
    }


def problems_of(manifest: Manifest, states: tuple[StateEntry, ...]) -> list[str]:
    """Return the problems of a manifest, and those that a check found, each once."""
    found = (f"{each.name}: {problem}" for each in states for problem in each.problems)
    return list(dict.fromkeys((*manifest.problems, *found)))


def tell_manifest(manifest: Manifest, states: tuple[StateEntry, ...]) -> None:
    """Show what a backup holds."""
    show(f"It holds the state of {moment(manifest.made)} UTC in {printable(manifest.source)}:")
    for each in states:
        if held := amounts(each.held):
            show(f"  {each.name}: {held}")
    for note in manifest.notes:
        show(note)
    for problem in problems_of(manifest, states):
        show(f"Problem: {problem}", err=True)


def amounts(held: Any) -> str:
    """Return counts as a text; those of 0 are left out."""
    return ", ".join(f"{noun} {count:,}" for noun, count in held.items() if count)


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.1f} KiB"


def _line(path: Path, found: Manifest | Exception) -> str:
    if isinstance(found, Exception):
        return f"{path.name}  damaged, or no backup"
    held = "; ".join(f"{each.name}: {text}" for each in found.states if (text := amounts(each.held)))
    return f"{path.name}  {moment(found.made)} UTC  {_size(path)}  {held or 'nothing'}"


def _listed(path: Path, found: Manifest | Exception) -> dict[str, Any]:
    if isinstance(found, Exception):
        return {"file": str(path.absolute()), "error": str(found)}
    return {"file": str(path.absolute()), "bytes": path.stat().st_size, **plain(found, found.states)}
