"""Examination of the memories that lie in files: a plugin's command group may have a command `examine` for it."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from beaver_hooks.cli.app import plugin_group
from beaver_hooks.cli.checks.files import PLUGINS
from beaver_hooks.cli.checks.findings import Finding, from_error, problem
from beaver_hooks.config import LoadedConfig
from beaver_hooks.plugins.modes import preset
from beaver_hostspecs import BeaverError

EXAMINE = "examine"
"""The command that returns a list of level, text and remedy; it opens no host and changes nothing."""


def examine(loaded: LoadedConfig) -> Iterator[Finding]:
    """Yield the findings of the memories that the configuration enables about their own databases."""
    config = loaded.config
    left_out = {*config.plugins.disabled, *preset(config.mode, explicit=config.explicit).blocked}
    sections = config.memory.sections if config.memory else {}
    for name, section in sections.items():
        if name not in left_out and section.get("enabled") is True and not _is_on_server(section):
            folders = dict.fromkeys((loaded.state_folder, loaded.person_folder))
            words = [str(each / PLUGINS / name) for each in folders]
            database = section.get("databasePath")
            words += ["--database", database] if isinstance(database, str) else []
            yield from _of_plugin(name, [*words, *_redacted(section)])


def _is_on_server(section: Mapping[str, Any]) -> bool:
    store = section.get("store")
    return isinstance(store, Mapping) and "postgres" in store


def _redacted(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options for what else is a secret by the settings of a memory."""
    settings = section.get("redaction")
    if isinstance(settings, Mapping):
        yield from (f"--redact={kind}" for kind, wanted in settings.items() if wanted is True)


def _of_plugin(name: str, words: list[str]) -> Iterator[Finding]:
    subject = f"memory {name}"
    try:
        group = plugin_group(name)
        command = group.commands.get(EXAMINE) if isinstance(group, click.Group) else None
        found = command.main(words, EXAMINE, standalone_mode=False) if command is not None else ()
    except BeaverError as error:
        yield from_error(subject, error, "correct its installation; `beaver plugins` shows its state")
        return
    except Exception as error:  # noqa: BLE001 - an error of the plugin is a finding
        yield problem(subject, f"it could not be examined ({type(error).__name__})", "run: beaver memory check")
        return
    for level, text, remedy in found:
        yield Finding(subject=subject, level=level, text=text, remedy=remedy)
