"""Builds the wheels once per test run, and installs them into a clean environment."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path

import attrs
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = {
    "beaver_hostspecs": ROOT / "hostspecs",
    "beaver_toolkit": ROOT / "toolkit",
    "beaver_memory": ROOT / "memory",
    "beaver_hooks": ROOT,
    "beaver_hooks_curated": ROOT / "plugins" / "curated",
    "beaver_hooks_gateway": ROOT / "plugins" / "gateway",
    "beaver_hooks_local": ROOT / "plugins" / "local",
    "beaver_tally": ROOT / "examples" / "tally",
}
"""Where each distribution is built from, by the name that its wheel begins with."""


@attrs.frozen(kw_only=True)
class Environment:
    """A Python environment."""

    python: Path

    def run(self, code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        """Run Python code in `folder`, with nothing of the caller's environment that could lend it packages."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "BEAVER"))
        }
        return subprocess.run(
            [self.python, "-W", "error", "-c", code],
            cwd=folder, env=inherited, text=True, capture_output=True, check=False, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all worker processes of this run share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    shared = folder / "packaging"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(scope="session")
def wheels(shared: Path) -> dict[str, Path]:
    """Return the wheel of every distribution."""
    once(shared / "wheels", build_wheels)
    return {path.name.split("-")[0]: path for path in (shared / "wheels").glob("*.whl")}


@pytest.fixture(scope="session")
def clean_environment(shared: Path, wheels: dict[str, Path]) -> Environment:
    """Return an environment that holds the wheels and what they declare as their dependencies, and nothing else."""
    once(shared / "environment", lambda folder: make_environment(folder, list(wheels.values())))
    return Environment(python=shared / "environment" / "bin" / "python")


@pytest.fixture
def development_environment() -> Environment:
    """Return the environment that the tests run in, where everything is installed editable."""
    return Environment(python=Path(sys.executable))


def once(folder: Path, make: Callable[[Path], None]) -> None:
    """Make `folder` unless another worker has."""
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            make(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build_wheels(folder: Path) -> None:
    for source in DISTRIBUTIONS.values():
        run("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source)


def make_environment(folder: Path, wheels: list[Path]) -> None:
    """Make an environment without the network: dependencies are copied from the one that the tests run in."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    python = folder / "bin" / "python"
    run("-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", *wheels)
    for name in needed([distribution(name) for name in DISTRIBUTIONS]):
        copy_installed(distribution(name), site)


def needed(distributions: list[Distribution]) -> set[str]:
    """Return the names of everything that the distributions need at run time, directly or not."""
    done: set[tuple[str, str]] = set()
    waiting = [each for found in distributions for each in requirements(found, "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in done:
            done.add((name, extra))
            waiting += requirements(distribution(name), extra)
    return {name for name, _ in done} - {name.replace("_", "-") for name in DISTRIBUTIONS}


def requirements(found: Distribution, extra: str) -> list[tuple[str, str]]:
    """Return name and extra of each requirement: those of the distribution itself, or of one of its extras."""
    parsed = [Requirement(text) for text in found.requires or ()]
    needed = [each for each in parsed if each.marker is None or each.marker.evaluate({"extra": extra})]
    return [(each.name.lower(), extra) for each in needed for extra in ("", *each.extras)]


def copy_installed(found: Distribution, site: Path) -> None:
    for file in found.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.locate_file(file), target)


def run(*arguments: object) -> None:
    """Run this Python with `arguments`; a failure shows what it said."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, text=True, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
