"""Where the configuration is: what the caller names, then `BEAVER_CONFIG`, then `.beaver/config.json`."""

import os
from collections.abc import Mapping
from pathlib import Path

import attrs

from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

VARIABLE = "BEAVER_CONFIG"
FOLDER = ".beaver"
FILE = "config.json"


@attrs.frozen(kw_only=True)
class Found:
    """A configuration file.

    Attributes:
        path: where it is, absolute.
        given: whether somebody named it, which is trust enough; else it merely lay in the working directory.
    """

    path: Path
    given: bool


def find_config(explicit: Path | None, environment: Mapping[str, str], cwd: Path) -> Found | None:
    """Return the first configuration there is, or `None`; parents of `cwd` are not searched.

    Raises:
        ConfigurationError: a named file does not exist, or the working directory cannot be looked into.
    """
    if explicit:
        return _given(cwd / explicit, "the configuration file {} does not exist; create it or correct the path")
    if environment.get(VARIABLE):
        named = cwd / environment[VARIABLE]
        return _given(named, f"{VARIABLE} names {{}}, which does not exist; correct the path")
    path = cwd / FOLDER / FILE
    return Found(path=path, given=False) if _is_there(path) else None


def _given(path: Path, absent: str) -> Found:
    if not _is_there(path):
        raise ConfigurationError("", absent.format(printable(str(path))))
    return Found(path=path, given=True)


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        # Unreadable is not absent, and absent would mean defaults without a word.
        problem = f"cannot look for {printable(str(path))}; check the path and the permissions of its folders"
    else:
        return True
    raise ConfigurationError("", problem)
