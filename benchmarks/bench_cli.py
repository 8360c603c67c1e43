"""Measures the cost of starting `beaver`, compared with importing click alone, and of a whole `beaver run`, offline.

The benchmark uses installed wheels, as users have them: it builds wheels, installs them into an environment of their
own, and copies their dependencies there from this environment. The sides alternate. The fastest of many runs counts,
because every disturbance makes a run slower. For `beaver run` the median is shown too.
"""

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import attrs

ROOT = Path(__file__).parents[1]
PROJECTS = ("hostspecs", "toolkit", "plugins/curated", ".")
ROUNDS, RUNS = 25, 15
START_TARGET, RUN_TARGET = 1.3, 1.0


@attrs.frozen(kw_only=True)
class Installed:
    """An environment that holds the wheels."""

    python: Path
    beaver: Path


def install(folder: Path) -> Installed:
    """Build the wheels, and install them into an environment in `folder`."""
    wheels = folder / "wheels"
    for project in PROJECTS:
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", wheels, ROOT / project]
        subprocess.run(build, check=True, capture_output=True)
    place = folder / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    shutil.copytree(sysconfig.get_path("purelib"), site, dirs_exist_ok=True, ignore=_ours)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, *wheels.glob("*.whl")], check=True)
    return Installed(python=python, beaver=place / "bin" / "beaver")


def _ours(_: str, names: list[str]) -> list[str]:
    """Return the files to leave out of the copy: the editable installations."""
    return [name for name in names if "beaver" in name.lower() or name.endswith(".pth")]


def seconds(command: Sequence[object], folder: Path) -> float:
    """Return the seconds of a command."""
    started = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True, capture_output=True, cwd=folder)
    return time.perf_counter() - started


def starting(installed: Installed, folder: Path) -> bool:
    """Compare `beaver --version` with importing click; return whether the target is met."""
    ours, floor = [installed.beaver, "--version"], [installed.python, "-c", "import click"]
    bare = [installed.python, "-c", "pass"]
    for command in (ours, floor, bare):
        seconds(command, folder)
    runs = [(seconds(ours, folder), seconds(floor, folder), seconds(bare, folder)) for _ in range(ROUNDS)]
    best, click, nothing = (min(side) for side in zip(*runs, strict=True))
    ratio, met = best / click, best / click <= START_TARGET
    print(f"best of {ROUNDS} interleaved runs, installed wheels, Python {sys.version.split()[0]}:")
    print(f"  {nothing * 1000:7.1f} ms   python -c pass")
    print(f"  {click * 1000:7.1f} ms   python -c 'import click'")
    print(f"  {best * 1000:7.1f} ms   beaver --version")
    print(f"  beaver --version {ratio:.2f} x `import click`; target at most {START_TARGET} x: {_word(met)}")
    return met


def running(installed: Installed, folder: Path) -> bool:
    """Time `beaver run` with the offline provider; return whether the target is met."""
    command = [installed.beaver, "run", "Remember that we release on Thursday."]
    first = seconds(command, folder)
    runs = [seconds(command, folder) for _ in range(RUNS)]
    met = median(runs) <= RUN_TARGET
    print(f"`beaver run`, offline provider, {RUNS} runs on one state folder:")
    print(f"  first {first * 1000:.0f} ms, best {min(runs) * 1000:.0f} ms, median {median(runs) * 1000:.0f} ms")
    print(f"  target at most {RUN_TARGET * 1000:.0f} ms: {_word(met)}")
    return met


def _word(met: bool) -> str:  # noqa: FBT001 - the result of a comparison
    return "met" if met else "MISSED"


def main() -> int:
    """Measure, print, and return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installed = install(folder)
        work = folder / "work"
        work.mkdir()
        return 0 if all([starting(installed, work), running(installed, work)]) else 1


if __name__ == "__main__":
    sys.exit(main())
