"""The installed plugins, found by their entry points and not imported."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from beaver_hooks.config import MEMORIES
from beaver_hooks.log import make_log
from beaver_hostspecs import PROJECT, distributions
from beaver_hostspecs.naming import type_name

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


@attrs.frozen(kw_only=True)
class Rivals:
    """Several distributions that announce one plugin name; the host loads none of them.

    Attributes:
        name: the name.
        targets: the object that each of them would load.
    """

    name: str
    targets: tuple[str, ...]

    def __str__(self) -> str:
        targets = " and ".join(self.targets)
        return (
            f"several installed distributions offer a plugin named `{self.name}` ({targets}); uninstall all of them"
            " but one"
        )


def installed() -> dict[str, "EntryPoint | Rivals"]:
    """Return the entry point of every installed plugin, by name, in the order of the names."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in sorted(_announced(), key=lambda point: point.name):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: _one(name, points) for name, points in found.items()}


def install_command(name: str) -> str | None:
    """Return the command that installs a plugin, or `None` if its distribution is unknown."""
    return distributions.install_command(f"beaver-hooks-{name}") if name in MEMORIES else None


def _one(name: str, points: dict[str, "EntryPoint"]) -> "EntryPoint | Rivals":
    if len(points) > 1:
        return Rivals(name=name, targets=tuple(sorted(points)))
    return next(iter(points.values()))


def _announced() -> Iterator["EntryPoint"]:
    # Importing importlib.metadata takes longer than importing the rest of this package.
    from importlib.metadata import distributions  # noqa: PLC0415

    seen: set[str] = set()
    for distribution in distributions():
        # Each by itself: a distribution with unreadable files must not hide the others.
        try:
            yield from _announced_by(distribution, seen)
        except Exception as error:  # noqa: BLE001 - reading foreign files may raise anything
            make_log().warning("distribution_unreadable", error=type_name(error))


def _announced_by(distribution: "Distribution", seen: set[str]) -> "tuple[EntryPoint, ...]":
    """Return the plugin entry points of a distribution, unless one of the same name is earlier on the path."""
    if PROJECT not in (distribution.read_text("entry_points.txt") or ""):
        return ()
    name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
    points = () if name in seen else tuple(distribution.entry_points.select(group=PROJECT))
    seen.add(name)
    return points
