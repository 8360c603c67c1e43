"""Keeps texts of the user that the memory could not store, in a few private files beside it.

`MEMORY.refused-1a2b3c4d.md` was written in `beaver memory curated edit` and was refused.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from beaver_hooks_curated import files
from beaver_hooks_curated.entries import Target
from beaver_hooks_curated.folders import make_folder
from beaver_toolkit.files import create_once

MOST = 10
"""Refused texts of each target; the oldest are deleted."""
REFUSED = "refused"


def keep(folder: Path, target: Target, content: bytes) -> Path:
    """Keep a text of the user that was refused; return its path.

    Raises:
        CuratedError: the folder cannot be made.
        OSError: the file cannot be written.
    """
    make_folder(folder)
    path = files.beside(folder / target.file_name, REFUSED)
    create_once(path, content)
    for old in sorted(_kept(folder, target), key=lambda each: each.lstat().st_mtime_ns)[:-MOST]:
        # The next call tries again: the new text matters more than the old file.
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)
    return path


def forget(folder: Path, targets: Iterable[Target]) -> None:
    """Delete all texts of the targets that are kept.

    Raises:
        MemoryUnwritable: it could not be done.
    """
    for target in targets:
        for path in _kept(folder, target):
            files.remove(path)


def _kept(folder: Path, target: Target) -> list[Path]:
    return list(folder.glob(f"{Path(target.file_name).stem}.{REFUSED}-*"))
