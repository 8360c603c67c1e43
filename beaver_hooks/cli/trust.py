"""`beaver trust`: the user reviews a configuration that was found, and confirms it or revokes that."""

import os
from pathlib import Path

import click

from beaver_hooks.cli import trust_files
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.terminal import agreed, show
from beaver_hooks.config import forget_trust
from beaver_hooks.config.loader import refuse_link
from beaver_hooks.config.locations import FILE, find_folder
from beaver_hooks.config.parser import build_config, read_json
from beaver_hooks.config.trust import confirm, fingerprint, recorded_fingerprint, review
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
        ctx.exit(trust_files.review(yes=yes, forget=forget, only_show=only_show))
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
