"""The plugins that are installed, known by their entry points and not imported."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from beaver_hostspecs import PROJECT, PluginRefused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = frozenset({"curated", "gateway", "local", "server"})
"""The plugins whose distributions we publish."""


def installed() -> dict[str, "EntryPoint"]:
    """Return the entry point of every installed plugin, by name, in the order of their names."""
    # Importing importlib.metadata takes longer than importing the rest of this package.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=PROJECT), key=lambda point: point.name):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginRefused(
                f"two installed distributions announce a plugin named `{point.name}` ({other.value} and "
                f"{point.value}); uninstall one of them",
                plugin=point.name,
            )
    return found


def install_command(name: str) -> str:
    """Return the command that installs a plugin, as far as anybody can know its distribution."""
    return f"pip install beaver-hooks-{name}" if name in OURS else f"pip install the distribution of `{name}`"


def versions(names: Mapping[str, "EntryPoint"]) -> dict[str, str]:
    """Return the version of each plugin's distribution."""
    return {name: point.dist.version if point.dist else "unknown" for name, point in names.items()}
