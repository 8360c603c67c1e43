"""The decisions of `make release` before it builds: one version, the changelog section, Pythons and requirements."""

import runpy
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
ReleaseError = RELEASE["ReleaseError"]
CHANGELOG = """# Changelog

## [Unreleased]

The next version, 0.2.0.

### Added

- Two.

## [0.1.0] - 2026-01-01

### Added

- One.
"""


def test_every_distribution_is_released_but_the_example():
    """The release has each distribution of the repository; the example plugin is not published."""
    files = {path.parent for path in ROOT.glob("*/pyproject.toml")} | {
        path.parent for path in ROOT.glob("*/*/pyproject.toml")
    }
    expected = {ROOT, *files} - {ROOT / "examples" / "tally"}

    assert expected == {(ROOT / source).resolve() for source in RELEASE["SOURCES"]}


def test_the_distributions_agree():
    """The distributions as they are have one version, which the changelog has a section for."""
    version = RELEASE["common_version"](RELEASE["projects"](ROOT))

    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == version
    assert RELEASE["notes"]((ROOT / "CHANGELOG.md").read_text("utf-8"), version).startswith(
        f"# Beaver Hooks {version}\n"
    )


def test_several_versions_are_refused():
    """Distributions that differ are named with their versions, and nothing is built."""
    with pytest.raises(ReleaseError, match=r"a 1\.0, b 1\.1; give all of them one"):
        RELEASE["common_version"]({"a": {"version": "1.0"}, "b": {"version": "1.1"}})


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1.0", "# Beaver Hooks 0.1.0\n\n### Added\n\n- One.\n"),
        ("0.2.0", "# Beaver Hooks 0.2.0\n\nThe next version, 0.2.0.\n\n### Added\n\n- Two.\n"),
    ],
)
def test_notes(version, expected):
    """The notes are the section of the version, or the unreleased one that announces it."""
    assert expected == RELEASE["notes"](CHANGELOG, version)


def test_a_version_without_a_section_is_refused():
    """A version that the changelog says nothing about is not released."""
    with pytest.raises(ReleaseError, match=r"no section \[0.3.0\]"):
        RELEASE["notes"](CHANGELOG, "0.3.0")


def test_what_is_needed():
    """The release downloads the requirements of all distributions and of the extras they use, not our own packages."""
    found = {
        "beaver-a": {"dependencies": ["beaver-b[x,y]>=1", "click>=8"]},
        "beaver-b": {
            "dependencies": ["attrs"],
            "optional-dependencies": {"x": ["apsw>=3"], "y": ["filelock"], "z": ["no"]},
        },
    }

    assert ["apsw>=3", "attrs", "click>=8", "filelock"] == RELEASE["needed"](found)


def test_an_interpreter_that_does_not_run_is_absent(tmp_path, monkeypatch):
    """A Python counts only if it runs and is of that version, as a shim on the path need not be."""
    (tmp_path / "python3.99").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.99").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    assert None is RELEASE["interpreter"]("3.99")


def test_an_interpreter_of_pyenv_is_found(tmp_path, monkeypatch):
    """A Python that only pyenv has is found."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = tmp_path / "versions" / f"{version}.0" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))

    assert str(folder / "python") == RELEASE["interpreter"](version)


def test_a_program_that_fails_is_shown_with_its_output():
    """A step that fails ends the release with the command and what it printed."""
    with pytest.raises(ReleaseError, match=r"failed:\nout\nerr"):
        RELEASE["run"](sys.executable, "-c", "import sys; print('out'); sys.exit('err')")
