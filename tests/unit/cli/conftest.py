"""Fixtures of all tests of the command line: a scratch folder, a clean environment, and a way to run a command."""

import importlib
import io
import json
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import attrs
import pytest

from beaver_hooks.agent.messages import Completion
from beaver_hooks.agent.providers.offline import OfflineProvider
from beaver_hooks.cli import errors
from beaver_hooks.log import LOGGER_NAME


class Ran(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty home, whose XDG folders are beside it, without variables from the environment."""
    for name in [name for name in os.environ if name.startswith(("BEAVER_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # The home directory keeps the state of work outside projects.
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Restore the logger, which each command configures for its process."""
    logger = logging.getLogger(LOGGER_NAME)
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate = before[:2]
    logger.setLevel(before[2])


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs `beaver` with the given words in this process.

    `stdin` holds the typed or piped text; `terminal` makes all three streams look like a terminal.
    """

    def run(*words: object, stdin: str | bytes | TextIO = b"", terminal: bool = False) -> Ran:
        capsys.readouterr()
        typed = stdin.encode() if isinstance(stdin, str) else stdin
        stream = io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8") if isinstance(typed, bytes) else typed
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", stream)
            for each in (sys.stdin, sys.stdout, sys.stderr):
                patch.setattr(each, "isatty", lambda: terminal)
            code = errors.run([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that installs a distribution of one plugin, for this process and those that it starts.

    `code` is its module; `plugin` and `group` name the factory of the plugin and its command group in that module.
    """
    site, modules = tmp_path / "site", []
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))

    def write(name: str, code: str, *, plugin: str | None = "Plugin", group: str | None = None) -> None:
        modules.append(f"installed_{name}")
        (site / f"installed_{name}.py").write_text(textwrap.dedent(code))
        info = site / f"beaver_hooks_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: beaver-hooks-{name}\nVersion: 1.0\n")
        points = [("beaver_hooks", plugin), ("beaver_hooks.cli", group)]
        lines = [f"[{where}]\n{name} = installed_{name}:{what}\n" for where, what in points if what]
        (info / "entry_points.txt").write_text("".join(lines) or "[beaver_hooks]\n")
        importlib.invalidate_caches()

    yield write
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def configured(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes a configuration, named by BEAVER_CONFIG, with its state in `.beaver` of the folder.

    The configuration disables all other plugins of this machine except those that the test installs, unless the test
    gives the section `plugins` itself.
    """

    def write(**sections: object) -> Path:
        points = metadata.entry_points(group="beaver_hooks")
        installed = {point.name for point in points if not point.value.startswith("installed_")}
        raw = {
            "memory": {"mode": "curated"},
            "plugins": {"disabled": sorted(installed - {"curated"})},
            "host": {"stateFolder": ".beaver"},
        }
        path = scratch / "config.json"
        path.write_text(json.dumps(raw | sections))
        monkeypatch.setenv("BEAVER_CONFIG", str(path))
        return path

    return write


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the offline provider cut off its answers."""
    complete = OfflineProvider.complete

    async def shortened(*words: Any, **options: Any) -> Completion:
        return attrs.evolve(await complete(*words, **options), finish_reason="length")

    monkeypatch.setattr(OfflineProvider, "complete", shortened)
