"""The common part of the commands that edit the configuration: the choice of the file, and the output."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from beaver_hooks.cli.app import CONFIG
from beaver_hooks.cli.common import set_up_log
from beaver_hooks.cli.terminal import show
from beaver_hooks.config.edits import ConfigEdit, Steps, edit_config
from beaver_hooks.config.locations import FILE, ConfigLocation, find_config, find_folder
from beaver_hooks.config.paths import printable
from beaver_hooks.plugins.settings_classes import check_plugin_sections, settings_classes
from beaver_hostspecs import scrub

Function = TypeVar("Function", bound=Callable[..., Any])

LITERAL = 'The credential is in the file itself; an environment variable is safer: write {"env": "NAME"} in its place.'

dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")


def target(config: Path | None) -> ConfigLocation:
    """Return the file to edit: the one named here or before the command, else the one that is found or made."""
    set_up_log()
    named = config or click.get_current_context().meta.get(CONFIG)
    cwd = Path.cwd()
    found = find_config(None if named is None else Path(named), os.environ, cwd)
    return found or ConfigLocation(path=find_folder(os.environ, cwd) / FILE, given=False)


def edited(found: ConfigLocation, steps: Steps, *, dry: bool) -> ConfigEdit:
    """Edit the file, or only compute the result of the edit, and show the changes.

    Raises:
        ConfigurationError: it cannot be edited, or the result would be wrong.
        KeyError: a setting to remove is missing.
    """
    done = edit_config(
        found, steps, environment=os.environ, classes=settings_classes, check=check_plugin_sections, write=not dry
    )
    where = printable(str(done.path))
    if not done.differs:
        show(f"{where} has that value already; nothing was written.")
        return done
    changes = "; ".join(str(each) for each in done.changes) or "$schema"
    end = "nothing was written" if dry else "it takes effect when `beaver` or another host starts next"
    show(scrub(f"{changes} (in {where}); {end}."))
    if any(each.after is not None and each.after.kind == "secret" for each in done.changes):
        show(LITERAL, err=True)
    return done
