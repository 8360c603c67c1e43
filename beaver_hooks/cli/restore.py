"""`beaver restore`: brings a backup back."""

import os
from pathlib import Path
from typing import Any

import click

from beaver_hooks.backups.backup import Stored
from beaver_hooks.backups.configured_plugins import Places
from beaver_hooks.backups.restore import Restored, restore
from beaver_hooks.cli.backup import (
    amounts,
    file_type,
    folder_type,
    json_option,
    only_option,
    parts_of,
    say_json,
    step,
)
from beaver_hooks.cli.common import common, configured
from beaver_hooks.cli.terminal import counted, moment, show
from beaver_hooks.config import Config
from beaver_hooks.config.locations import FOLDER
from beaver_hooks.config.paths import printable
from beaver_hooks.subjects.holders import erased_since
from beaver_hostspecs import PERSON_PART, PROJECT_PART, AuditUnavailable

PLACES = frozenset({"folder", "databasePath"})
"""The settings by which plugins keep their files outside of the state folder."""

AGAIN = "erase it again: `beaver memory erase --subject USER`."


@click.command(name="restore")
@click.argument("file", type=file_type)
@click.option(
    "--to",
    "folder",
    metavar="FOLDER",
    type=folder_type,
    help="Restore into FOLDER/project/.beaver and FOLDER/person/.beaver instead, for example to look at a backup.",
)
@click.option("--merge", is_flag=True, help="Add what is missing to the state that is there, which stays as it is.")
@only_option
@click.option("--dry-run", is_flag=True, help="Verify the backup, show what would be restored, and do nothing.")
@json_option
@common
def command(
    *, file: Path, folder: Path | None, merge: bool, only: str | None, dry_run: bool, as_json: bool, config: Path | None
) -> None:
    """Bring a backup back, into an empty state folder or beside the present state.

    Every byte of it is verified before anything is written. Without --merge existing state is refused. With it,
    memories are added that are missing, forgotten ones stay forgotten, and where both differ the present state stays
    and is named. A backup may hold the data of a person that was erased after it was made: the command says so, and you
    erase it again. Restore only backups that you made: what they hold counts as your own.
    """
    loaded = configured(config)
    places = Places(state=loaded.state_folder, person=loaded.person_folder)
    if folder is not None:
        _refuse_named_places(loaded.config)
        places = Places(
            state=folder.absolute() / PROJECT_PART / FOLDER, person=folder.absolute() / PERSON_PART / FOLDER
        )
    stored = Stored.under(loaded, places, os.environ)
    done = restore(stored, file, parts=parts_of(only), merge=merge, dry=dry_run, waiting=step)
    erased, warning = _erased(loaded.state_folder, done)
    if as_json:
        say_json(dry_run=dry_run, **_plain(done), erased_since=erased)
    else:
        _tell(done, dry=dry_run)
        if folder is not None and not dry_run:
            show(
                f"To use it, copy config.json to {places.state}, and run: cd {folder.absolute() / PROJECT_PART} &&"
                f" HOME={folder.absolute() / PERSON_PART} beaver --config .beaver/config.json memory list"
            )
    if warning:
        show(warning, err=True)


def _refuse_named_places(config: Config) -> None:
    """Refuse `--to` under a configuration that gives a plugin a place of its own: its part would go there."""
    sections = {**(config.memory.sections if config.memory else {}), **config.plugins.settings}
    for name, section in sections.items():
        for key in PLACES & section.keys():
            raise click.UsageError(
                f"The configuration gives {name} a place of its own (`{key}`), so its part would not be restored into"
                " the folder; name a configuration without that setting with --config."
            )


def _erased(folder: Path, done: Restored) -> tuple[int | None, str]:
    """Return of how many persons data was erased after the backup, `None` if unknown, and a warning about it."""
    try:
        count = erased_since(folder, done.manifest.made)
    except AuditUnavailable as error:
        return None, f"Whether data of persons was erased after this backup was made is not known: {error}"
    if not count:
        return 0, ""
    return (
        count,
        f"The data of {counted(count, 'person')} was erased after this backup was made. If it is back, {AGAIN}",
    )


def _plain(done: Restored) -> dict[str, Any]:
    return {
        "made": done.manifest.made.isoformat(),
        "source": done.manifest.source,
        "restored": {
            name: {
                "added": dict(each.added),
                "present": dict(each.present),
                "conflicts": list(each.conflicts),
                "notes": list(each.notes),
            }
            for name, each in done.reports.items()
        },
        "skipped": list(done.skipped),
        "problems": _problems(done),
    }


def _problems(done: Restored) -> list[str]:
    return list(dict.fromkeys((*done.manifest.problems, *done.problems)))


def _tell(done: Restored, *, dry: bool) -> None:
    what = "Would restore" if dry else "Restored"
    show(f"{what} the state of {moment(done.manifest.made)} UTC in {printable(done.manifest.source)}:")
    for name, each in done.reports.items():
        there = amounts(each.present)
        show(f"  {name}: {amounts(each.added) or 'nothing new'}{f' ({there} were there)' if there else ''}")
        for line in (*each.conflicts, *each.notes):
            show(f"    {line}")
    for line in (*done.skipped, *(f"Problem: {problem}" for problem in _problems(done))):
        show(line, err=True)
