"""Checks which plugin reads a section of the configuration, and reports sections that no plugin reads."""

from collections.abc import Collection, Mapping

import attrs

from beaver_hooks.config.suggestions import meant_or_known
from beaver_hostspecs.distributions import install_command

MEMORIES = ("curated", "gateway", "local", "server")
"""The plugins of this project, by name. Each is a distribution of its own, `beaver-hooks-<name>`."""


@attrs.frozen(kw_only=True)
class SectionOwners:
    """The sections that plugins read, and the names of the plugins.

    Attributes:
        claimed: the plugin that reads a section, by the path of the section.
        ignored: names of plugins whose sections may stay unread.
        installed: names of all installed plugins.
    """

    claimed: Mapping[str, str]
    ignored: Collection[str]
    installed: Collection[str]


def check_claims(path: str, claims: SectionOwners) -> str | None:
    """Return the fault of a section at `path`, or `None` if it may stay."""
    root, _, name = path.partition(".")
    if path in claims.claimed or name in claims.ignored:
        return None
    if name in claims.installed:
        return _elsewhere(name, claims)
    if root == "memory":
        return _no_memory(name, claims)
    return check_known(name, claims)


def check_known(name: str, claims: SectionOwners) -> str | None:
    """Return the fault of a plugin's name, or `None` for a plugin that is installed or may be missing."""
    if name in {*claims.ignored, *claims.installed, *claims.claimed.values()}:
        return None
    return f"no plugin of that name is installed{meant_or_known(name, claims.installed, 'installed plugins')}"


def _elsewhere(name: str, claims: SectionOwners) -> str:
    theirs = [path for path, plugin in claims.claimed.items() if plugin == name]
    if theirs:
        return f"the settings of the plugin `{name}` belong in `{theirs[0]}`"
    return f"the plugin `{name}` has no settings"


def _no_memory(name: str, claims: SectionOwners) -> str:
    if name in MEMORIES:
        return f"no plugin named `{name}` is installed; run: {install_command(f'beaver-hooks-{name}')}"
    claimed = [path.removeprefix("memory.") for path in claims.claimed if path.startswith("memory.")]
    return f"is not a setting{meant_or_known(name, ('mode', *MEMORIES, *claimed), 'settings')}"
