"""Examination of the memories: in files, by a plugin's command `examine`; on servers, by the configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from beaver_hooks.cli.app import plugin_group
from beaver_hooks.cli.checks.files import PLUGINS
from beaver_hooks.cli.checks.findings import Finding, from_error, ok, problem, warning
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.paths import printable, shown_variable
from beaver_hooks.plugins.modes import preset
from beaver_hostspecs import BeaverError
from beaver_toolkit.postgres_urls import parsed

EXAMINE = "examine"
"""The command that returns a list of level, text and remedy; it opens no host and changes nothing."""

IN_ENVIRONMENT = 'put it into an environment variable, and write {"env": "NAME"} in its place'


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


def examine_servers(sections: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield host, database and tenant of each memory on a server; never its user or its password.

    Args:
        sections: the raw settings of the memories, by plugin.
        environment: holds the addresses.
    """
    for name, section in sections.items():
        store = section.get("store")
        settings = store.get("postgres") if isinstance(store, Mapping) else None
        if section.get("enabled") is True and isinstance(settings, Mapping):
            yield from _postgres(f"memory.{name}.store", settings, section.get("project"), environment)


def _postgres(
    subject: str, settings: Mapping[str, Any], project: object, environment: Mapping[str, str]
) -> Iterator[Finding]:
    url = settings.get("url")
    text = environment.get(url["env"], "") if is_reference(url) else url
    if is_reference(url) and not text:
        name = shown_variable(url["env"])
        variable = f"the environment variable {name}" if name else "its environment variable"
        yield problem(subject, f"{variable} is not set, so no memory can be read", f"set {name or 'it'}")
        return
    address = parsed(text) if isinstance(text, str) else None
    if address is None:
        yield problem(subject, "its `url` is no address of a database", "write postgresql://user@host:5432/database")
        return
    part = f", project {project}" if project else ""
    yield ok(subject, printable(f"{address.place}, tenant {settings.get('tenant')}{part}"))
    if address.has_password and not is_reference(url):
        yield warning(f"{subject}.postgres.url", "the password is in the configuration file itself", IN_ENVIRONMENT)
