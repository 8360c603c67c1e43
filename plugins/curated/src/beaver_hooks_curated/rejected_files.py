"""Keeps aside what a person wrote and the memory could not take: private files beside it, a few of them at most.

`MEMORY.displaced-1a2b3c4d.md` was saved while we wrote, and is no text, not UTF-8 for example.
`MEMORY.refused-1a2b3c4d.md` was written in `beaver memory curated edit`, and was not taken.
`USER.moved-1a2b3c4d.md` was the profile of a project until `beaver memory curated move-user`; its history is beside it.
"""

import contextlib
import stat
from collections.abc import Sequence
from pathlib import Path

from beaver_hooks_curated import files, folders
from beaver_hooks_curated.access import BOTH, Targets
from beaver_hooks_curated.entries import Target

MOST = 10
"""Files of each target and kind; the oldest go."""


def keep(folder: Path, target: Target, content: bytes) -> Path:
    """Keep what a person wrote and was not taken; return where.

    Raises:
        CuratedError: the folder cannot be made.
        OSError: the file cannot be written.
    """
    folders.make_folder(folder)
    path = files.aside_path(folder / target.file_name, files.REFUSED)
    files.write_new(path, content)
    folders.sync_folder(folder)
    _bound(folder, target, files.REFUSED)
    return path


def take_in(paths: Sequence[Path], target: Target) -> None:
    """Make private what was displaced, and drop the oldest of too many."""
    for path in paths:
        if stat.S_ISREG(path.lstat().st_mode):
            path.chmod(files.PRIVATE)
        _bound(path.parent, target, files.DISPLACED)


def displaced(folder: Path, targets: Targets = BOTH) -> int:
    """Return how many texts of the targets were displaced there and are kept still."""
    return sum(len(_kept(folder, target, files.DISPLACED)) for target in targets)


def forget(folder: Path, targets: Targets) -> None:
    """Drop all that is kept aside of the targets.

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
        # Next time, then: what was just kept matters more.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _kept(folder: Path, target: Target, why: str) -> list[Path]:
    beginning = f"{Path(target.file_name).stem}.{why}-"
    try:
        return [path for path in folder.iterdir() if path.name.startswith(beginning)]
    except OSError:
        # Whoever needs the folder says what is wrong with it.
        return []
