"""The versions of Python, SQLite, this distribution and those of the plugins, none of which is imported."""

import platform
from collections.abc import Iterator

from beaver_hooks import __version__
from beaver_hooks.cli.checks.findings import Finding, ok, warning
from beaver_hooks.plugins.entry_points import Rivals, installed
from beaver_hostspecs import CONTRACT_VERSION
from beaver_toolkit.sqlite.errors import driver

SOUND_SQLITE = (3, 51, 3)
"""The first version in which a badly timed reset of the write-ahead log does not damage the database."""


def engines() -> list[Finding]:
    """Return the versions of Python and SQLite."""
    return [ok("Python", platform.python_version()), sqlite_version(str(driver().sqlite_lib_version()))]


def sqlite_version(version: str) -> Finding:
    """Return whether a version of SQLite is safe for a database that several processes write."""
    if tuple(map(int, version.split("."))) >= SOUND_SQLITE:
        return ok("SQLite", version)
    sound = ".".join(map(str, SOUND_SQLITE))
    return warning(
        "SQLite", f"{version} has a bug that can damage a database; {sound} fixes it", "run: pip install --upgrade apsw"
    )


def distributions() -> Iterator[Finding]:
    """Yield the versions of Beaver Hooks and its installed plugins."""
    yield ok("beaver-hooks", f"{__version__}, contract {CONTRACT_VERSION}")
    for name, point in installed().items():
        if isinstance(point, Rivals):
            yield warning(f"distribution of {name}", str(point).partition("; ")[0], "uninstall all of them but one")
        else:
            yield ok(f"distribution of {name}", distribution(point.dist))


def distribution(found: object) -> str:
    """Return name and version of a distribution, as far as they are known."""
    name, version = getattr(found, "name", None), getattr(found, "version", None)
    return f"{name} {version}" if name else "from an unknown distribution"
