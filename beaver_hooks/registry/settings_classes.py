"""The settings classes of the installed plugins, without a host: for whoever shows or edits a configuration."""

from typing import TYPE_CHECKING

from beaver_hooks.config import Config
from beaver_hooks.config.kinds import settings_fields
from beaver_hooks.log import make_log
from beaver_hooks.registry.asking import ask, contained
from beaver_hooks.registry.catalog import Rivals, installed
from beaver_hooks.registry.descriptions import check_info
from beaver_hooks.registry.modes import preset_of
from beaver_hooks.registry.registry import Registry
from beaver_hostspecs import PluginError, PluginInfo, PluginRefused
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def settings_classes(config: Config) -> dict[str, type]:
    """Return the settings class of each plugin that `config` lets load, by the path of its section."""
    left_out = {*config.plugins.disabled, *preset_of(config).blocked}
    found = {}
    for name, point in installed().items():
        info = None if name in left_out else described(name, point)
        if info is not None and info.settings is not None:
            found[info.settings_path or f"plugins.{name}"] = info.settings
    return found


def described(name: str, point: "EntryPoint | Rivals") -> PluginInfo | None:
    """Return what an installed plugin says of itself; `None` for one that cannot be loaded, which a host says too."""
    if isinstance(point, Rivals):
        return None
    try:
        with contained(name, "could not describe itself", passing=(PluginRefused,)):
            registry = Registry()
            describe = registry.of(registry.add(name, point.load()()), "describe")
            return None if describe is None else _checked(name, ask(describe, {}))
    except PluginError as error:
        make_log().debug("plugin_not_described", plugin=name, error=type_name(error))
        return None


def _checked(name: str, answer: object) -> PluginInfo:
    info = check_info(name, answer)
    if info.settings is not None:
        settings_fields(info.settings)  # its annotations must name something
    return info
