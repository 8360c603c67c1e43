"""Acknowledged commits that are missing from databases, wherever the state lies."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from beaver_hooks.cli.checks.findings import Finding, problem
from beaver_hooks.config.paths import printable
from beaver_toolkit.sqlite.losses import databases_with_losses, losses_of, remedy


def examine(folders: Iterable[Path]) -> Iterator[Finding]:
    """Yield the losses of databases that the user has not accepted, in some folders and those of their plugins."""
    within = (each for folder in folders for each in (folder, *folder.glob("*"), *folder.glob("plugins/*")))
    for path in (path for folder in dict.fromkeys(within) for path in databases_with_losses(folder)):
        for loss in losses_of(path):
            yield problem(path.name, f"{printable(str(path))}: {loss}", remedy(path))
