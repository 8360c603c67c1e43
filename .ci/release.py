#!/usr/bin/env python3
"""Builds a release into `dist/` and installs it, as a user would, with pip and uvx. Run it with `make release`.

`dist/` then holds a wheel and a source archive of each distribution and `RELEASE.md`, the section of the changelog.
The dependencies are downloaded with pip's own configuration. The installation uses packages from local folders only, so
that no index can replace a package of the project by another one of the same name.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SOURCES = (".", "hostspecs", "toolkit", "memory", "plugins/curated", "plugins/gateway", "plugins/local")
PYTHONS = ("3.11", "3.12", "3.13")
WANTED = "beaver-hooks[gateway,local]"
FACT, QUESTION, EXPECTED = "Remember that we release on Thursday.", "When do we release?", "we release on Thursday."


class ReleaseError(Exception):
    """The release cannot be made; the message has the reason."""


def projects(root: Path) -> dict[str, dict[str, Any]]:
    """Return the metadata of each distribution, by its name."""
    found = [tomllib.loads((root / source / "pyproject.toml").read_text("utf-8"))["project"] for source in SOURCES]
    return {each["name"]: each for each in found}


def common_version(found: dict[str, dict[str, Any]]) -> str:
    """Return the version that all distributions have.

    Raises:
        ReleaseError: they have several.
    """
    versions = {each["version"] for each in found.values()}
    if len(versions) != 1:
        several = ", ".join(f"{name} {each['version']}" for name, each in found.items())
        raise ReleaseError(f"the distributions have several versions: {several}; give all of them one")
    return str(versions.pop())


def notes(changelog: str, version: str) -> str:
    """Return the section of the changelog for a version: its own, or the unreleased one if that announces the version.

    Raises:
        ReleaseError: no section describes that version.
    """
    parts = re.split(r"^## \[([^\]]+)\].*$", changelog, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = sections.get(version) or sections.get("Unreleased", "")
    if version not in sections and not re.search(rf"\b{re.escape(version)}\.$", text, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no section [{version}], and [Unreleased] does not announce it")
    return f"# Beaver Hooks {version}\n\n{text.strip()}\n"


def build(version: str, names: Iterable[str]) -> None:
    """Build a source archive of each distribution, and from it a wheel.

    Raises:
        ReleaseError: a file is missing, or there is an unexpected one.
    """
    for source in SOURCES:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT / source)
    stems = sorted(f"{name.replace('-', '_')}-{version}" for name in names)
    expected = sorted([f"{stem}-py3-none-any.whl" for stem in stems] + [f"{stem}.tar.gz" for stem in stems])
    built = sorted(path.name for path in DIST.iterdir() if path.suffix in {".whl", ".gz"})
    if built != expected:
        raise ReleaseError(f"built {', '.join(built)}; expected {', '.join(expected)}")


def needed(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the external dependencies of the distributions, with those of the extras that they use of each other."""
    lines = [line for each in found.values() for line in each["dependencies"]]
    for name, extras in re.findall(r"^(beaver-\w+)\[([\w,-]+)\]", "\n".join(lines), re.MULTILINE):
        lines += [line for extra in extras.split(",") for line in found[name]["optional-dependencies"][extra]]
    return sorted({line for line in lines if not line.startswith("beaver-")})


def interpreter(version: str) -> str | None:
    """Return the path of a working Python of a version, from `PATH` or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        if path and output(path, "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])") == version:
            return str(path)
    return None


def install_with_pip(python: str, folder: Path, wheels: Path, lines: list[str]) -> list[str]:
    """Install the release into an environment of its own; return the command `beaver`."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "download", "--quiet", "--dest", wheels, *lines)
    run(own, "-m", "pip", "--isolated", "install", "--quiet", "--no-index", "-f", DIST, "-f", wheels, WANTED)
    return [str(folder / "bin" / "beaver")]


def uvx(folder: Path) -> Path | None:
    """Return the program `uvx`; if it is missing, install it into an environment of its own."""
    if found := shutil.which("uvx"):
        return Path(found)
    run(sys.executable, "-m", "venv", folder)
    done = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=False)
    return folder / "bin" / "uvx" if done.returncode == 0 else None


def check(command: list[str], folder: Path, version: str) -> None:
    """Print the version and run a turn in each of two processes, in an empty home.

    Raises:
        ReleaseError: the version or the answer is wrong.
    """
    (folder / "project").mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER", "XDG", "PYTHON"))}
    environment = {**kept, "HOME": str(folder), "UV_PYTHON_DOWNLOADS": "never", "UV_CACHE_DIR": str(folder / "uv")}

    def beaver(*arguments: str) -> str:
        return run(*command, *arguments, cwd=folder / "project", env=environment)

    said = beaver("--version")
    beaver("init", "--local", "--provider", "offline")
    beaver("run", FACT)
    answer = beaver("run", QUESTION)
    if version not in said or EXPECTED not in answer:
        raise ReleaseError(f"{command[0]} said {said!r} and answered {answer!r}")


def run(*command: object, **more: Any) -> str:
    """Run a program and return its output.

    Raises:
        ReleaseError: the program failed; the message has its output.
    """
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def output(*command: str) -> str:
    """Return the output of a program, or an empty text if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def installations(version: str, lines: list[str], folder: Path) -> Iterator[str]:
    """Install and check the release on each Python, with pip and with uvx; yield a line for each."""
    tool = uvx(folder / "uv-environment")
    for python_version in PYTHONS:
        python = interpreter(python_version)
        if python is None:
            yield f"Python {python_version}: absent, not checked"
            continue
        place, wheels = folder / python_version, folder / f"wheels-{python_version}"
        command = install_with_pip(python, place / "environment", wheels, lines)
        check(command, place / "pip", version)
        yield f"Python {python_version}: pip installs it, `beaver --version` and a turn work"
        if tool is None:
            yield f"Python {python_version}: uvx not checked, as pip finds no package `uv`"
            continue
        options = ["--no-index", "-f", DIST, "-f", wheels, "--python", python, "--from", f"{WANTED}=={version}"]
        check([str(tool), *map(str, options), "beaver"], place / "uvx", version)
        yield f"Python {python_version}: uvx runs it, `beaver --version` and a turn work"


def main() -> None:
    """Make the release."""
    try:
        found = projects(ROOT)
        version = common_version(found)
        text = notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        build(version, found)
        (DIST / "RELEASE.md").write_text(text, "utf-8")
        print(f"dist: {len(found)} distributions, version {version}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for line in installations(version, needed(found), Path(folder)):
                print(line, flush=True)
    except ReleaseError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
