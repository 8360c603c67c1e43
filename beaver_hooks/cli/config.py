"""`beaver config`: reads and edits the configuration, one setting at a time."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from beaver_hooks.cli.app import CONFIG
from beaver_hooks.cli.common import common, set_up_log
from beaver_hooks.cli.edits import dry_run, edited, target
from beaver_hooks.cli.terminal import show
from beaver_hooks.config import Config, load_config
from beaver_hooks.config.edits import Step, with_placeholders
from beaver_hooks.config.entries import MASK, effective
from beaver_hooks.config.parser import read_json
from beaver_hooks.config.paths import meant_or_known, printable
from beaver_hooks.config.type_hints import key_of, optional_of, settings_fields
from beaver_hooks.plugins.settings_classes import settings_classes
from beaver_toolkit.strict_json import InvalidJson, loads

MASKED = f'"{MASK}" hides a secret that is in the file itself, or a setting of a plugin that is not loaded.'


def _keys(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the keys of a path."""
    keys = tuple(value.split(".")) if value is not None else ()
    if not all(keys):
        raise click.BadParameter("write keys with dots between them, for example agent.maxToolRounds", ctx, param)
    return keys


def _paths(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - the signature is click's
    """Complete the paths of the host's own settings, without importing a plugin."""
    return [path for path in own_paths(Config) if path.startswith(incomplete)]


@click.group(name="config")
def command() -> None:
    """Read and edit the configuration.

    PATH is the keys of a setting with dots between them: agent.maxToolRounds. An edit keeps the formatting of the file,
    is refused if the result would be wrong, and counts as confirmed. It takes effect when `beaver` or another host
    starts next.
    """


@command.command(name="get")
@click.argument("path", callback=_keys, shell_complete=_paths, required=False)
@common
def get(path: tuple[str, ...], config: Path | None) -> None:
    """Print a setting as JSON, or all of them.

    It is the value in effect: that of the file, else the default. A secret is shown by its environment variable.
    """
    set_up_log()
    value = _found(_effective(config), path)
    shown = json.dumps(value, indent=2 if isinstance(value, dict) else None, ensure_ascii=False)
    show(shown)
    if json.dumps(MASK) in shown:
        show(MASKED, err=True)


@command.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("path", callback=_keys, shell_complete=_paths)
@click.argument("value")
@dry_run
@common
def set_(*, path: tuple[str, ...], value: str, dry_run: bool, config: Path | None) -> None:
    """Set a setting.

    VALUE is JSON where it is JSON (3, true, null, ["maps"], {"env": "NAME"}), else a text. Without a configuration
    .beaver/config.json is made in this folder.
    """
    edited(target(config), lambda _: [Step(path=path, value=_value(value))], dry=dry_run)


@command.command(name="unset")
@click.argument("path", callback=_keys, shell_complete=_paths)
@dry_run
@common
def unset(*, path: tuple[str, ...], dry_run: bool, config: Path | None) -> None:
    """Take a setting out of the file, so that its default is in effect."""
    found = target(config)
    try:
        edited(found, lambda _: [Step(path=path, remove=True)], dry=dry_run)
    except KeyError:
        text = f"There is no {'.'.join(path)} in {printable(str(found.path))}; nothing was changed."
    else:
        return
    raise click.UsageError(text)


def own_paths(cls: type, prefix: str = "") -> list[str]:
    """Return the paths of all settings of a class, and of the classes in it."""
    paths = []
    for each in settings_fields(cls):
        kind: Any = optional_of(each.type) or each.type
        path = f"{prefix}{key_of(each)}"
        paths += own_paths(kind, f"{path}.") if attrs.has(kind) else [path]
    return paths


def _effective(given: Path | None) -> dict[str, Any]:
    named = given or click.get_current_context().meta.get(CONFIG)
    loaded = load_config(None if named is None else Path(named))
    raw: Mapping[str, Any] = {} if loaded.path is None else read_json(loaded.path)
    whole: dict[str, Any] = effective(
        loaded.config, raw, settings_classes(loaded.config), with_placeholders(raw, os.environ)
    )
    return whole


def _value(text: str) -> Any:
    try:
        return loads(text)
    except InvalidJson:
        return text


def _found(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value at `path`, or raise an error that names the missing key."""
    for number, key in enumerate(path, 1):
        there = value if isinstance(value, Mapping) else {}
        if key not in there:
            raise click.UsageError(
                f"There is no setting {'.'.join(path[:number])}{meant_or_known(key, there, 'settings')}."
            )
        value = there[key]
    return value
