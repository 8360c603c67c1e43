"""Shows on a terminal that a database of an earlier version is brought to this one."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaver_hooks_local.cli.progress import Bar

MANY = 5_000
"""Rows from which on a migration takes long enough to be shown."""


class UpgradeBar:
    """Shows a bar on stderr, if that is a terminal, while a database is brought over; one after the other."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def __call__(self, path: Path, done: int, total: int) -> None:
        """Show how many rows of a database are done; remove the bar at the end."""
        if total < MANY:
            return
        if self._bar is None:
            # The commands import this module, and few databases are of an earlier version.
            from beaver_hooks_local.cli.progress import Bar  # noqa: PLC0415

            self._bar = Bar()
        self._bar(done, total, f"Bringing {path.name} to this version of Beaver Hooks (rows)")
        if done >= total:
            self._bar.end()
            self._bar = None
