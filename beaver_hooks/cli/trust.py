"""`beaver trust`: a person reviews a configuration that was found, and confirms it or takes that back."""

import os
import sys
from pathlib import Path

import click

from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.terminal import show
from beaver_hooks.config import forget_trust
from beaver_hooks.config.finding import FILE, FOLDER
from beaver_hooks.config.loading import refuse_link
from beaver_hooks.config.reading import build_config, read_json
from beaver_hooks.config.trust import confirm, fingerprint, recorded_fingerprint, review
from beaver_hooks.registry.settings_classes import settings_classes
from beaver_hostspecs import scrub


@click.command(name="trust")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Confirm it without being asked.")
@click.option("--forget", is_flag=True, help="Take the confirmation back.")
@click.option("--show", "only_show", is_flag=True, help="Only say whether it is confirmed: exit code 0, or 1 if not.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error happened.")
@click.pass_context
def command(ctx: click.Context, file: Path | None, *, yes: bool, forget: bool, only_show: bool) -> None:
    """Review and confirm a configuration that was found.

    FILE is .beaver/config.json unless given. A configuration can name programs, addresses and environment variables,
    and one lies in every folder that somebody hands you; so it takes effect only once you have confirmed it here. What
    is shown holds no credential: secrets and variables are shown by name, addresses by host. A change, unless it is one
    of a number, asks again and shows what changed.
    """
    if yes + forget + only_show > 1:
        raise click.UsageError("Give only one of --yes, --forget and --show.")
    path = Path.cwd() / (file or Path(FOLDER, FILE))
    if forget:
        there_was = forget_trust(path)
        show("The confirmation is taken back." if there_was else "There was no confirmation to take back.")
        return
    refuse_link(path)
    ctx.exit(_review(path, yes=yes, only_show=only_show))


def _review(path: Path, *, yes: bool, only_show: bool) -> int:
    """Show a configuration, and confirm it if that is wanted; return the exit code."""
    # What is shown and what is confirmed come from the same bytes: the file may change at any time.
    raw = read_json(path)
    config = build_config(raw, source=path)
    classes = settings_classes(config)
    current, known = fingerprint(raw), recorded_fingerprint(path, os.environ)
    show(scrub(str(review(path, raw, os.environ, classes))))
    if current == known:
        show("\nThis configuration is confirmed.")
        return 0
    changed = "has changed since it was confirmed" if known else "is not confirmed"
    show(f"\nThis configuration {changed}.")
    if only_show or not _agreed(yes=yes):
        return FOUND
    confirm(path, raw, os.environ, classes)
    show("It is confirmed from now on.")
    return 0


def _agreed(*, yes: bool) -> bool:
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("Nobody can be asked without a terminal; review it, and repeat this with --yes.")
    return click.confirm("Use it from now on?", err=True)
