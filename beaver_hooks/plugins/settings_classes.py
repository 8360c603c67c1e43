"""The settings classes of the installed plugins, without a host: to show and to edit a configuration."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from beaver_hooks.config import Config
from beaver_hooks.config.type_hints import settings_fields
from beaver_hooks.log import make_log
from beaver_hooks.plugins.contract_checks import check_info
from beaver_hooks.plugins.entry_points import Rivals, installed
from beaver_hooks.plugins.modes import preset_of
from beaver_hooks.plugins.registry import Registry
from beaver_hooks.plugins.sync_hooks import ask, contained
from beaver_hostspecs import ConfigurationError, PluginError, PluginInfo, PluginRefused
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def settings_classes(config: Config) -> dict[str, type]:
    """Return the settings class of each plugin that `config` lets load, by the path of its section."""
    sections = (settings_of(name, info) for name, info in descriptions(config).items())
    return {path: cls for path, cls in sections if cls is not None}


def settings_of(name: str, info: PluginInfo) -> tuple[str, type | None]:
    """Return the path of a plugin's settings, and their class, or `None` without one."""
    return info.settings_path or f"plugins.{name}", info.settings


def check_plugin_sections(config: Config, environment: Mapping[str, str]) -> None:
    """Refuse the settings of plugins that a host would refuse, as far as that is known without starting plugins.

    Raises:
        ConfigurationError: a section does not fit, no plugin reads it, or a plugin is disabled that the mode needs.
    """
    if needed := sorted(preset_of(config).required & {*config.plugins.disabled}):
        problem = f"the memory mode `{config.mode}` needs `{needed[0]}`; change `memory.mode` first"
        raise ConfigurationError("plugins.disabled", problem)
    there = descriptions(config)
    claimed = {}
    for name, info in there.items():
        path, cls = settings_of(name, info)
        if cls is not None:
            claimed[path] = name
            config.settings(cls, path, environment=environment)
    everything = installed()
    config.check_sections(
        claimed=claimed, ignored=preset_of(config).blocked | (everything.keys() - there.keys()), installed=everything
    )


def descriptions(config: Config) -> dict[str, PluginInfo]:
    """Return the description of each plugin that `config` lets load, without those that cannot be loaded."""
    left_out = {*config.plugins.disabled, *preset_of(config).blocked}
    found = {name: described(name, point) for name, point in installed().items() if name not in left_out}
    return {name: info for name, info in found.items() if info is not None}


def described(name: str, point: "EntryPoint | Rivals") -> PluginInfo | None:
    """Return the description of an installed plugin; `None` if it cannot be loaded, which a host reports."""
    if isinstance(point, Rivals):
        return None
    try:
        with contained(name, "could not describe itself", passing=(PluginRefused,)):
            registry = Registry()
            member = registry.add(name, point.load()())
            describe = registry.of(member, "describe")
            return member.info if describe is None else _checked(name, ask(describe, {}))
    except PluginError as error:
        make_log().debug("plugin_not_described", plugin=name, error=type_name(error))
        return None


def _checked(name: str, answer: object) -> PluginInfo:
    info = check_info(name, answer)
    if info.settings is not None:
        settings_fields(info.settings)  # raises if an annotation cannot be resolved
    return info
