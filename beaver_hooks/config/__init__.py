"""Configuration: finds the file, asks for trust unless the caller named the file, and reads it strictly.

`load_config` does all of it. `structure` makes a plugin's settings from its raw section, `config_schema` the
JSON Schema for editors. Every error is a `ConfigurationError` that names a path and holds no value.
"""

from beaver_hooks.config.converter import structure
from beaver_hooks.config.entries import Entry
from beaver_hooks.config.loader import LoadedConfig, load_config
from beaver_hooks.config.locations import ConfigLocation, find_config
from beaver_hooks.config.model import MEMORIES, Config, HostSettings, Memory, Mode, Plugins, is_section_path
from beaver_hooks.config.parser import parse_config, read_config
from beaver_hooks.config.schema import config_schema
from beaver_hooks.config.summaries import Change, Summary
from beaver_hooks.config.trust import forget_trust, is_trusted, trust_config

__all__ = [
    "MEMORIES",
    "Change",
    "Config",
    "ConfigLocation",
    "Entry",
    "HostSettings",
    "LoadedConfig",
    "Memory",
    "Mode",
    "Plugins",
    "Summary",
    "config_schema",
    "find_config",
    "forget_trust",
    "is_section_path",
    "is_trusted",
    "load_config",
    "parse_config",
    "read_config",
    "structure",
    "trust_config",
]
