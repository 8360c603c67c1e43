"""Makes the private folders of curated memory, and sweeps temporary files."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from beaver_hooks_curated.errors import MemoryUnwritable
from beaver_toolkit.files import sync

PRIVATE = 0o700


def make_folder(folder: Path) -> None:
    """Make a private folder unless it exists.

    Raises:
        MemoryUnwritable: it cannot be made, or is a symbolic link or a file.
    """
    if folder.is_dir() and not folder.is_symlink():
        return
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    with explained(folder):
        # One by one: with `parents=True` the mode applies to the last one only.
        for each in reversed(missing):
            each.mkdir(mode=PRIVATE, exist_ok=True)
            sync(each.parent)
        folder.mkdir(exist_ok=True)
    if folder.is_symlink():
        raise MemoryUnwritable(f"The folder {folder} is a symbolic link; name its target instead.")


def sweep(folder: Path) -> int:
    """Remove the temporary files that killed processes left in `folder`; return how many. Needs the lock."""
    strays = [path for path in folder.glob(".*.tmp") if path.is_file() and not path.is_symlink()]
    for stray in strays:
        with explained(stray):
            stray.unlink(missing_ok=True)
    return len(strays)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an `OSError` into a `MemoryUnwritable` that names the path."""
    try:
        yield
    except OSError as error:
        raise MemoryUnwritable(
            f"{path} cannot be written ({error.strerror}); make room or make it writable, and try again. The old"
            " content is unchanged."
        ) from error
