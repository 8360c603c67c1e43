"""`beaver trust`: the user reviews a configuration that was found, and confirms it or revokes that."""

import difflib
import os
from pathlib import Path

import click

from beaver_hooks.cli.checks import settings
from beaver_hooks.cli.checks.findings import report
from beaver_hooks.cli.codes import CONFIGURATION, FOUND
from beaver_hooks.cli.terminal import agreed, escaped, show
from beaver_hooks.cli.text_format import counted
from beaver_hooks.config import forget_trust
from beaver_hooks.config.loader import refuse_link
from beaver_hooks.config.locations import FILE, find_folder
from beaver_hooks.config.parser import build_config, read_json
from beaver_hooks.config.paths import printable
from beaver_hooks.config.trust import confirm, fingerprint, recorded_fingerprint, review
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.plugins.settings_classes import settings_classes
from beaver_hostspecs import scrub


@click.command(name="trust")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Confirm without a question.")
@click.option("--forget", is_flag=True, help="Revoke the confirmation.")
@click.option("--show", "only_show", is_flag=True, help="Only show whether it is confirmed: exit code 0, or 1 if not.")
@click.option("--files", "of_files", is_flag=True, help="Review files that git may have brought, instead of FILE.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def command(ctx: click.Context, file: Path | None, *, yes: bool, forget: bool, only_show: bool, of_files: bool) -> None:
    """Review and confirm a configuration that was found, or files that git may have brought.

    FILE is .beaver/config.json unless given. A configuration can name programs, addresses and environment variables,
    and a folder from another person may contain one; so it takes effect only after you have confirmed it here. The
    review shows no credentials: secrets and variables are shown by name, addresses by host. After a change, unless only
    a number changed, the configuration must be confirmed again, and the review shows the change.

    --files reviews the files of the state folder, and of plugins in ~/.beaver, that git's index lists. A `git pull` can
    change them, so they are used only in the form that this machine wrote or that you confirmed. The review shows how
    each file differs from that.
    """
    if yes + forget + only_show > 1:
        raise click.UsageError("Give only one of --yes, --forget and --show.")
    if of_files:
        if file is not None:
            raise click.UsageError("--files takes no FILE: it reviews the files of the state folder.")
        ctx.exit(_review_files(yes=yes, forget=forget, only_show=only_show))
    path = Path.cwd() / (file or find_folder(os.environ, Path.cwd()) / FILE)
    if forget:
        there_was = forget_trust(path)
        show("The confirmation is revoked." if there_was else "There was no confirmation to revoke.")
        return
    refuse_link(path)
    ctx.exit(_review(path, yes=yes, only_show=only_show))


def _review(path: Path, *, yes: bool, only_show: bool) -> int:
    """Show a configuration, and confirm it if the user agrees; return the exit code."""
    # The review and the confirmation use the same bytes: the file may change at any time.
    raw = read_json(path)
    config = build_config(raw, source=path)
    classes = settings_classes(config)
    current, known = fingerprint(raw), recorded_fingerprint(path, os.environ)
    show(scrub(str(review(path, raw, os.environ, classes))))
    if current == known:
        show("\nThis configuration is confirmed.")
        return 0
    changed = "was changed after it was confirmed" if known else "is not confirmed"
    show(f"\nThis configuration {changed}.")
    if only_show:
        return FOUND
    if not agreed(yes=yes):
        show("Nothing was changed.", err=True)
        return FOUND
    confirm(path, raw, os.environ, classes)
    show("It is confirmed from now on.")
    return 0


def _review_files(*, yes: bool, forget: bool, only_show: bool) -> int:
    """Show the unconfirmed files, and confirm them if the user agrees; return the exit code."""
    looked = settings.look(None)
    if looked.loaded is None:
        report(looked.findings, as_json=False)
        return CONFIGURATION
    files = StateFiles(looked.folder, os.environ)
    folders = (looked.folder, *looked.further_folders)
    if forget:
        return _forget(files, folders)
    # The review and the confirmation use the same bytes: a file may change at any time.
    unbelieved = files.unbelieved(*folders)
    for path, content in unbelieved.items():
        show(_difference(path, files.records.last(path), content), end="")
    if not unbelieved:
        show("No file needs to be confirmed.")
        return 0
    show(f"\n{counted(len(unbelieved), 'file')} may have come with a repository and must be confirmed.")
    if only_show:
        return FOUND
    if not agreed(yes=yes):
        show("Nothing was changed.", err=True)
        return FOUND
    for path, content in unbelieved.items():
        files.records.put(path, content)
    show("The files are confirmed as shown." if len(unbelieved) > 1 else "The file is confirmed as shown.")
    return 0


def _forget(files: StateFiles, folders: tuple[Path, ...]) -> int:
    paths = {path for folder in folders for path in files.records.met(folder)}
    for path in paths:
        files.records.forget(path)
    show(f"The confirmation of {counted(len(paths), 'file')} is revoked.")
    return 0


def _difference(path: Path, before: bytes, after: bytes) -> str:
    """Return the difference between a content and the last confirmed one, with every character visible."""
    name = printable(str(path))
    known, now = (escaped(each.decode("utf-8", "backslashreplace")).splitlines() for each in (before, after))
    compared = difflib.unified_diff(
        known, now, f"{name} (unchanged since you confirmed it)", f"{name} (now)", lineterm=""
    )
    return scrub("".join(f"{each}\n" for each in compared))
