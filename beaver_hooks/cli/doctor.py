"""`beaver doctor`: examines whether the stored state is sound, private and in use."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import click

from beaver_hooks.audit.database import DATABASE as TRAIL
from beaver_hooks.cli.absence import Absence
from beaver_hooks.cli.checks import databases, files, health, memories, origin, settings, versions
from beaver_hooks.cli.checks.findings import Finding, exit_code, from_error, ok, report
from beaver_hooks.cli.common import common, set_up_log
from beaver_hooks.cli.state import is_there
from beaver_hooks.cli.terminal import counted, waiting
from beaver_hooks.config.paths import printable
from beaver_hooks.config.trust import read_record, record_path
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.sqlite.losses import accept_losses, losses_of


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: ok, and the findings.")
@click.option(
    "--accept-loss",
    "accepted",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="Accept that commits are missing from this database: delete the notice and the damaged log.",
)
@common
@click.pass_context
def command(ctx: click.Context, *, as_json: bool, accepted: tuple[Path, ...], config: Path | None) -> None:
    """Examine the stored state: databases, files and their permissions.

    It also examines the audit chain, the health of the plugins, confirmations and free space, and verifies the rows of
    the local memory, of a large one only the newest, and counts those that hold secrets. It opens no host, and changes
    and creates nothing, unless you accept a loss; each finding names the remedy. A degraded plugin is a problem here.
    The exit code is 0, or 1 if there is a problem.
    """
    set_up_log()
    findings = list(_accepted(accepted))
    looked = settings.look(config)
    findings += [*versions.engines(), *versions.distributions(), *looked.findings, *confirmations(os.environ)]
    findings += settings.small_model(looked.loaded) if looked.loaded is not None else []
    findings += memories.examine_servers(looked.memories, os.environ)
    findings += _kept(looked)
    findings.append(files.free_space(looked.folder))
    report(findings, as_json=as_json)
    ctx.exit(exit_code(findings))


def _accepted(paths: Collection[Path]) -> Iterator[Finding]:
    """Accept the losses of databases, and yield how many commits are missing from each.

    Raises:
        UsageError: one of them has no loss; none is accepted.
    """
    for path in paths:
        if not losses_of(path):
            raise click.UsageError(f"There is no loss to accept: no commits are known to be missing from {path}.")
    for path in paths:
        count = sum(loss.commits for loss in accept_losses(path))
        yield ok("accepted", f"{counted(count, 'commit')} of {printable(str(path))}")


def confirmations(environment: Mapping[str, str]) -> list[Finding]:
    """Return whether the record of confirmed configurations can be read, and only this user can change it."""
    path = record_path(environment)
    if not is_there(path):
        return [ok("confirmations", "no configuration has been confirmed")]
    try:
        count = len(read_record(path))
    except ConfigurationError as error:
        return [from_error("confirmations", error, "move it away")]
    found = [each for each in files.entries(path.parent, private=True) if each.path != path.parent]
    examined = files.examine(found, what="confirmations", root=path.parent)
    return [ok("confirmations", f"{counted(count, 'configuration')} in {printable(str(path))}"), *examined]


def _kept(looked: settings.SettingsCheck) -> Iterator[Finding]:
    folder = looked.folder
    if (fault := files.folder_fault(folder)) is not None:
        yield fault
        return
    yield ok("state folder", printable(str(folder)))
    with waiting("Examining the files"):
        yield from files.examine(files.entries(folder), what="the state folder", root=folder)
        yield from _elsewhere(looked)
        yield from origin.examine(folder, looked.further_folders, os.environ)
    with waiting("Examining the conversations"):
        yield databases.sessions(folder)
    with waiting("Examining the audit trail"):
        yield from _trail(folder)
    if looked.loaded is not None:
        with waiting("Examining the memories"):
            yield from memories.examine(looked.loaded)
    # Opening a database finds its losses.
    yield from databases.losses([folder, *looked.further_folders])
    config = None if looked.loaded is None else looked.loaded.config
    yield from health.kept(folder, looked.sections, Absence.under(config))


def _elsewhere(looked: settings.SettingsCheck) -> Iterator[Finding]:
    """Yield findings about files outside of the state folder: the configuration, and folders it names."""
    path = looked.loaded.path if looked.loaded is not None else None
    if path is not None:
        yield from files.examine(files.entry(path, private=False), what="the configuration", root=path)
    for name, folder in looked.plugin_folders.items():
        yield from files.examine(files.entries(folder, private=True), what=f"plugin {name}", root=folder)
    if (own := looked.persons_folder) is not None:
        yield from files.examine(files.entries(own, private=True), what="your projects together", root=own)


def _trail(folder: Path) -> Iterator[Finding]:
    database = databases.trail(folder)
    yield database
    # The chain of a damaged or missing database cannot be verified.
    if database.level == "ok" and is_there(folder / TRAIL):
        yield databases.chain(folder)
