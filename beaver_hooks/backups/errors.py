"""The errors of backups."""

from pathlib import Path

from beaver_hooks.config.paths import printable
from beaver_hostspecs import BeaverError


class BackupError(BeaverError):
    """A backup cannot be made or restored; names the remedy."""


class DamagedBackup(BackupError):
    """An archive is no backup, or not as it was written.

    Args:
        path: the archive.
        problem: the fault, as the rest of the sentence.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{printable(str(path))} {problem}. Nothing was restored; use another backup.")


def full_disk(error: OSError, path: Path) -> BackupError:
    """Return the error for a file that cannot be written."""
    return BackupError(
        f"{printable(str(path))} cannot be written ({error.strerror}); make room, or name another folder."
    )
