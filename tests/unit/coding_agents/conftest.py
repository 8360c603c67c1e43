"""The folders and the environment of a client of Claude Code's hooks."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder with a name that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="bt-") as name:
        yield Path(name)


@pytest.fixture
def environment(runtime: Path, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "COV", "CLAUDE"))}
    return kept | {"XDG_RUNTIME_DIR": str(runtime), "CLAUDE_PROJECT_DIR": str(tmp_path)}
