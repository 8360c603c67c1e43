"""Finds configuration and state: the file that the caller names, then `BEAVER_CONFIG`, then the nearest `.beaver`."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

VARIABLE = "BEAVER_CONFIG"
FOLDER = ".beaver"
FILE = "config.json"


@attrs.frozen(kw_only=True)
class ConfigLocation:
    """A configuration file.

    Attributes:
        path: its absolute path.
        given: whether the caller or the environment named it, so that it is trusted; else it is from the nearest
            `.beaver`.
    """

    path: Path
    given: bool


def find_config(explicit: Path | None, environment: Mapping[str, str], cwd: Path) -> ConfigLocation | None:
    """Return the named configuration, else that of the nearest `.beaver`, else `None`.

    Raises:
        ConfigurationError: a named file does not exist, or the working directory cannot be read.
    """
    if explicit:
        return _given(cwd / explicit, "the configuration file {} does not exist; create it or correct the path")
    if environment.get(VARIABLE):
        named = cwd / environment[VARIABLE]
        return _given(named, f"{VARIABLE} names {{}}, which does not exist; correct the path")
    path = find_folder(environment, cwd) / FILE
    return ConfigLocation(path=path, given=False) if _is_there(path) else None


def find_folder(environment: Mapping[str, str], cwd: Path) -> Path:
    """Return the state folder of a working directory: the nearest `.beaver` at or above it, else the user's own.

    The search is like git's search for a repository: never above the home directory, and outside of it no further than
    a change of owner or file system. It skips a folder above the working directory that another user owns.

    Raises:
        ConfigurationError: the working directory cannot be read.
    """
    home = home_folder(environment)
    for folder in _upwards(cwd, home):
        path = folder / FOLDER
        if _is_there(path) and (folder == cwd or path.lstat().st_uid == _user()):
            return path
    return home / FOLDER


def person_folder(environment: Mapping[str, str]) -> Path:
    """Return the state folder of the user, for data that belong to the person and not to a project.

    It may be a link, as a project cannot have put it there.
    """
    return Path(os.path.realpath(home_folder(environment) / FOLDER))


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the home directory of the user."""
    return Path(environment.get("HOME") or Path.home())


def _upwards(folder: Path, home: Path) -> Iterator[Path]:
    """Yield a folder and the folders above it that may belong to the same project."""
    within = folder.is_relative_to(home)
    while True:
        yield folder
        if folder in (home, folder.parent) or not (within or _same_place(folder, folder.parent)):
            return
        folder = folder.parent


def _same_place(folder: Path, above: Path) -> bool:
    try:
        one, other = folder.stat(), above.stat()
    except OSError:
        return False
    return (one.st_uid, one.st_dev) == (other.st_uid, other.st_dev)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _given(path: Path, absent: str) -> ConfigLocation:
    if not _is_there(path):
        raise ConfigurationError("", absent.format(printable(str(path))))
    return ConfigLocation(path=path, given=True)


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        # An unreadable file is an error: to treat it as missing would silently use the defaults.
        problem = f"cannot look for {printable(str(path))}; check the path and the permissions of its folders"
    else:
        return True
    raise ConfigurationError("", problem)
