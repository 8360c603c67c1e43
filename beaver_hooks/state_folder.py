"""The folder in which a host and its plugins keep their state.

A foreign repository may contain a `.beaver` of its own. So the folder itself and the folders of the plugins are never
symbolic links, which could redirect the host's writes to any place. Parents of the folder may be links.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from beaver_hostspecs import AuditUnavailable, PluginRefused
from beaver_hostspecs.naming import PLUGIN_NAME
from beaver_toolkit.files import create_once

PRIVATE = 0o700


def make_state_folder(path: Path) -> Path:
    """Make the state folder (0700, hidden from git) unless it exists, and return its absolute path.

    A folder of this user with a looser mode is tightened.

    Raises:
        AuditUnavailable: it cannot be made, is a symbolic link or no folder, or every user may write to it.
    """
    folder = path.absolute()
    with _explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _make_private(folder)
        _hide_from_git(folder)
    return folder


def plugin_folder(state: Path, name: str) -> Path:
    """Make the folder of one plugin (0700) unless it exists, and return its absolute path.

    The state folder is made and checked, too, as the trail may not have been opened before.

    Raises:
        PluginRefused: the name is no valid name of a plugin.
        AuditUnavailable: the folder cannot be made or is a symbolic link.
    """
    if not isinstance(name, str) or not PLUGIN_NAME.fullmatch(name):
        raise PluginRefused(
            "a plugin's name must have 1 to 64 letters, digits, dashes and underscores, and start with a letter;"
            " rename its entry point",
        )
    folder = make_state_folder(state) / "plugins" / name
    with _explained(folder):
        _make_private(folder.parent)
        _make_private(folder)
    return folder


def _make_private(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        what = "a symbolic link; name its target instead" if stat.S_ISLNK(found.st_mode) else "not a folder; move it"
        raise AuditUnavailable(f"The state folder {folder} is {what}.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        _tighten(folder, found.st_mode)


def _tighten(folder: Path, mode: int) -> None:
    try:
        folder.chmod(PRIVATE)
    except PermissionError:
        # The mode of another user's folder is that user's choice, unless every user may write to it.
        if mode & stat.S_IWOTH:
            raise AuditUnavailable(f"Every user can write to the state folder {folder}; use a private one.") from None


def _hide_from_git(folder: Path) -> None:
    path = folder / ".gitignore"
    # A symbolic link counts as present, wherever it leads: the host never writes through it.
    if not os.path.lexists(path):
        create_once(path, b"*\n")


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AuditUnavailable(
            f"The state folder {folder} cannot be used ({error.strerror}); make it writable, or set"
            " `host.stateFolder` to another one."
        ) from error
