"""Examination of the configuration in effect: reports no value and asks the user no question."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import click

from beaver_hooks.cli.app import CONFIG
from beaver_hooks.cli.checks.files import PLUGINS, is_folder
from beaver_hooks.cli.checks.findings import Finding, from_error, ok, problem, warning
from beaver_hooks.config import Config, LoadedConfig, load_config
from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.locations import find_folder
from beaver_hooks.config.parser import read_json
from beaver_hooks.config.paths import printable, shown_variable
from beaver_hooks.plugins.modes import preset_of
from beaver_hostspecs import ConfigurationError, ConfigurationNotTrusted

SUBJECT = "configuration"


@attrs.frozen(kw_only=True)
class SettingsCheck:
    """The result of the examination.

    Attributes:
        loaded: the configuration, or `None` if it cannot take effect.
        folder: the state folder; without a configuration the default one.
        findings: the findings about the configuration.
    """

    loaded: LoadedConfig | None
    folder: Path
    findings: tuple[Finding, ...]

    @property
    def sections(self) -> dict[str, Mapping[str, Any]]:
        """The raw settings of plugins in the configuration, by the probable name of the plugin."""
        if self.loaded is None:
            return {}
        config = self.loaded.config
        return {**(config.memory.sections if config.memory else {}), **config.plugins.settings}

    @property
    def memories(self) -> Mapping[str, Mapping[str, Any]]:
        """The raw settings of the memories, by plugin."""
        memory = None if self.loaded is None else self.loaded.config.memory
        return {} if memory is None else memory.sections

    @property
    def plugin_folders(self) -> dict[str, Path]:
        """The existing folders that a setting `folder` gives to plugins."""
        named = {name: section.get("folder") for name, section in self.sections.items()}
        folders = {name: Path(folder) for name, folder in named.items() if isinstance(folder, str)}
        return {name: folder for name, folder in folders.items() if folder.is_absolute() and is_folder(folder)}

    @property
    def persons_folder(self) -> Path | None:
        """The folder of plugin files that belong to the person, if it exists outside of the state folder."""
        if self.loaded is None or os.path.realpath(self.loaded.person_folder) == os.path.realpath(self.folder):
            return None
        folder = self.loaded.person_folder / PLUGINS
        return folder if is_folder(folder) else None

    @property
    def further_folders(self) -> tuple[Path, ...]:
        """The folders outside of the state folder in which plugins keep files."""
        own = self.persons_folder
        return (*self.plugin_folders.values(), *([own] if own else []))


def look(given: Path | None) -> SettingsCheck:
    """Return the examined configuration: the one named here or before the command, else the one that is found."""
    named = given or click.get_current_context().meta.get(CONFIG)
    try:
        loaded = load_config(None if named is None else Path(named))
    except ConfigurationError as error:
        return SettingsCheck(loaded=None, folder=find_folder(os.environ, Path.cwd()), findings=(_wrong(error),))
    findings = (_source(loaded), _mode(loaded), *_blocked(loaded))
    return SettingsCheck(loaded=loaded, folder=loaded.state_folder, findings=findings)


def provider(loaded: LoadedConfig, environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Return the destination of prompts, and whether its credential is set."""
    settings, subject = loaded.config.provider, "provider"
    if settings.base_url is None or loaded.path is None:
        return [ok(subject, f"{settings.kind}; nothing is sent anywhere")]
    raw = read_json(loaded.path).get("provider", {})
    where = ok(subject, f"{settings.kind}, at {urlsplit(settings.base_url).netloc}")
    return [where, _key("provider.apiKey", raw, environment)]


def small_model(loaded: LoadedConfig, environment: Mapping[str, str] = os.environ) -> list[Finding]:
    """Return the small model that plugins may ask, and whether its credential is set; also whether one is missing."""
    settings, subject = loaded.config.host.small_model, "small model"
    if settings is None or loaded.path is None:
        return _missing_model(loaded.config)
    raw = read_json(loaded.path)["host"]["smallModel"]
    where = ok(subject, f"{printable(settings.model)}, at {urlsplit(settings.base_url).netloc}")
    return [where, _key("host.smallModel.apiKey", raw, environment)]


def _missing_model(config: Config) -> list[Finding]:
    section = config.section("memory.local") or {}
    capture = section.get("capture")
    extractor = capture.get("extractor") if isinstance(capture, Mapping) else None
    if section.get("enabled") is not True or extractor not in {"model", "hybrid"}:
        return []
    text = f"`{extractor}`, but no small model is configured, so the rules capture"
    return [warning("memory.local.capture.extractor", text, "configure `host.smallModel`, or set it to `rules`")]


def _key(subject: str, raw: Mapping[str, Any], environment: Mapping[str, str]) -> Finding:
    key = raw.get("apiKey")
    if key is None:
        return ok(subject, "none is configured or sent")
    if not is_reference(key):
        remedy = 'put it into an environment variable, and write {"env": "NAME"} in its place'
        return warning(subject, "the credential is in the configuration file itself", remedy)
    name = shown_variable(key["env"])
    variable = f"the environment variable {name}" if name else "its environment variable"
    if environment.get(key["env"]):
        return ok(subject, f"{variable} is set")
    return problem(subject, f"{variable} is not set, so the model cannot be called", f"set {name or 'it'}")


def _wrong(error: ConfigurationError) -> Finding:
    if isinstance(error, ConfigurationNotTrusted):
        return from_error(SUBJECT, error, "review it with `beaver trust`")
    return from_error(SUBJECT, error, "correct the file; docs/reference/configuration.md describes every setting")


def _source(loaded: LoadedConfig) -> Finding:
    if loaded.path is None:
        return ok(SUBJECT, "there is no file, so the defaults apply; `beaver init` writes one")
    who = "named by you" if loaded.trusted_by == "given" else "found here and confirmed"
    return ok(SUBJECT, f"{printable(str(loaded.path))}; {who}")


def _blocked(loaded: LoadedConfig) -> list[Finding]:
    """Return the memories that the configuration enables and the mode blocks."""
    config = loaded.config
    sections = {name: config.section(f"memory.{name}") for name in preset_of(config).blocked}
    remedy = "set it to false, or set `memory.mode` to `hybrid` or `curated`"
    return [
        warning(f"memory.{name}.enabled", f"true, but the memory mode `{config.mode}` blocks `{name}`", remedy)
        for name, section in sorted(sections.items())
        if section is not None and section.get("enabled") is True
    ]


def _mode(loaded: LoadedConfig) -> Finding:
    config = loaded.config
    how = "explicit" if config.explicit else "the default, because the configuration sets none"
    return ok("memory mode", f"{config.mode}, {how}")
