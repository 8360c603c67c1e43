"""Keeps texts of the user that the memory could not store, in a few private files beside it.

`MEMORY.displaced-1a2b3c4d.md` was saved during a write of the plugin and is not text, for example not UTF-8.
`MEMORY.refused-1a2b3c4d.md` was written in `beaver memory curated edit` and was refused.
`USER.moved-1a2b3c4d.md` was the profile of a project until `beaver memory curated move-user`; its history is beside it.
"""

import contextlib
import stat
from collections.abc import Sequence
from pathlib import Path

from beaver_hooks_curated import files, folders
from beaver_hooks_curated.access import BOTH, Targets
from beaver_hooks_curated.entries import Target
from beaver_toolkit.files import sync

MOST = 10
"""Files of each target and kind; the oldest are deleted."""


def keep(folder: Path, target: Target, content: bytes) -> Path:
    """Keep a text of the user that was refused; return its path.

    Raises:
        CuratedError: the folder cannot be made.
        OSError: the file cannot be written.
    """
    folders.make_folder(folder)
    path = files.aside_path(folder / target.file_name, files.REFUSED)
    files.write_new(path, content)
    sync(folder)
    _bound(folder, target, files.REFUSED)
    return path


def take_in(paths: Sequence[Path], target: Target) -> None:
    """Make displaced files private, and drop the oldest beyond `MOST`."""
    for path in paths:
        if stat.S_ISREG(path.lstat().st_mode):
            path.chmod(files.PRIVATE)
        _bound(path.parent, target, files.DISPLACED)


def displaced(folder: Path, targets: Targets = BOTH) -> int:
    """Return how many displaced texts of the targets are still kept in `folder`."""
    return sum(len(_kept(folder, target, files.DISPLACED)) for target in targets)


def forget(folder: Path, targets: Targets) -> None:
    """Drop all texts of the targets that are kept aside.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    for target in targets:
        for why in (files.DISPLACED, files.REFUSED, files.MOVED):
            for path in _kept(folder, target, why):
                files.remove(path)


def _bound(folder: Path, target: Target, why: str) -> None:
    kept = sorted(_kept(folder, target, why), key=lambda path: path.lstat().st_mtime_ns)
    for path in kept[:-MOST]:
        # The next call tries again: the new text matters more than the old file.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _kept(folder: Path, target: Target, why: str) -> list[Path]:
    beginning = f"{Path(target.file_name).stem}.{why}-"
    try:
        return [path for path in folder.iterdir() if path.name.startswith(beginning)]
    except OSError:
        # The caller that needs the folder reports its fault.
        return []
