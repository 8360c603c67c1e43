"""Copies of the working tree, each with an environment whose installed packages are those of the copy.

An editable install names absolute paths, so a copy of the files alone would test the original. Here the copy has a
`.venv` of its own: third-party packages are links, the project's own point into the copy, and so does `sys.executable`,
which makes it true for each process that a test starts.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]

MEMORY = 8_000_000
"""Kilobytes that a process of a copy may map: a mutant that fills the memory fails before the machine does."""


TIMED_OUT = 124
"""The exit code of a run that was ended at its time limit."""

running: set[subprocess.Popen[str]] = set()


def listed(*patterns: str) -> list[str]:
    """Return the files that git tracks or would track."""
    command = ["git", "ls-files", "-coz", "--exclude-standard", "--", *patterns]
    names = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def copy_tree(target: Path) -> Path:
    """Copy what git tracks or would track, as a repository of its own, and link the environment and the models."""
    for name in listed():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    subprocess.run(["git", "init", "-q"], cwd=target, check=True)
    (target / "build").mkdir()
    for models in (ROOT / "build").glob("model*"):
        (target / "build" / models.name).symlink_to(models)
    _copy_environment(Path(sys.prefix), target / ".venv", target)
    return target


def _copy_environment(source: Path, target: Path, tree: Path) -> None:
    packages = Path(sysconfig.get_path("purelib")).relative_to(source)
    for folder in (packages, Path("bin")):
        (target / folder).mkdir(parents=True)
        for entry in (source / folder).iterdir():
            # Compiled modules of one copy must not be read by another.
            if entry.name != "__pycache__":
                _copy_entry(entry, target / folder / entry.name, tree)
    shutil.copy2(source / "pyvenv.cfg", target / "pyvenv.cfg")


def _copy_entry(entry: Path, target: Path, tree: Path) -> None:
    """Copy a Python link as it is, rewrite the files that name the original tree, link everything else."""
    if entry.is_symlink():
        target.symlink_to(entry.readlink())
    elif entry.name.startswith("_editable_impl_") or (entry.parent.name == "bin" and entry.read_bytes()[:2] == b"#!"):
        target.write_text(entry.read_text("utf-8").replace(str(ROOT), str(tree)), "utf-8")
        target.chmod(entry.stat().st_mode)
    else:
        target.symlink_to(entry)


def write_source(path: Path, text: str) -> None:
    """Write a module, and forget its compiled form: that is recognised by size and second, which may be the same."""
    path.write_text(text, "utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def run_pytest(tree: Path, arguments: list[str], limit: float | None = None, **environment: str) -> tuple[int, str]:
    """Run pytest in a copy and return its exit code and output; `TIMED_OUT` beyond the limit in seconds."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST", "PYTHON"))}
    command = [str(tree / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    process = subprocess.Popen(
        ["sh", "-c", f'ulimit -v {MEMORY} && exec "$@"', "sh", *command],
        cwd=tree,
        env=inherited | environment,
        text=True,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    running.add(process)
    try:
        output = process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        return TIMED_OUT, ""
    else:
        return process.returncode, output
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """End a run of pytest and the processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    running.discard(process)


def end_all() -> None:
    """End every run of pytest: what an interrupt of this process must not leave behind."""
    for process in tuple(running):
        end(process)
