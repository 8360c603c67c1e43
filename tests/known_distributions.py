"""Reads the metadata of each distribution in site-packages once per process: `beaver` asks for it several times a command.

Distributions elsewhere, as tests make them, are read each time.
"""

import sysconfig
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path

SITES = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}

_Read = metadata.PathDistribution


class _Known(_Read):
    """A distribution that keeps what it has read."""

    metadata = cached_property(_Read.metadata.fget)
    entry_points = cached_property(_Read.entry_points.fget)
    _normalized_name = cached_property(_Read._normalized_name.fget)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read_text = cache(super().read_text)


def remember() -> None:
    """Read each installed distribution once from now on, in this process and those forked from it."""
    known = cache(_Known)
    metadata.PathDistribution = lambda path: known(path) if path.parent in SITES else _Read(path)
