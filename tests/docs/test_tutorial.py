"""The commands of the first tutorial work in their order, and print what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from docs.test_code_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "first-ten-minutes.md"
INSTALLING = ("python3 -m venv ", ". ", "pip install ")


@attrs.frozen(kw_only=True)
class Step:
    """The commands of one block, and the lines that the page shows below them."""

    commands: tuple[str, ...]
    shown: tuple[str, ...]


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    for block in blocks(text):
        lines = tuple(block.code.splitlines())
        if block.info == "sh":
            found.append(Step(commands=lines, shown=()))
        else:
            found[-1] = attrs.evolve(found[-1], shown=lines)
    return found


def missing(shown: tuple[str, ...], printed: str) -> list[str]:
    """Return the lines of a page that a program did not print, or not in this order."""
    rest = iter(printed.splitlines())
    return [line for line in shown if not any(line in each for each in rest)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Run every step in an empty folder, each command as a process, and return what each step printed."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BEAVER_", "XDG_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
    environment = {**inherited, "HOME": str(home), "PATH": path, "NO_COLOR": "1"}

    def run(command):
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout + done.stderr

    return [
        "".join(run(command) for command in step.commands if not command.startswith(INSTALLING))
        for step in steps(PAGE.read_text("utf-8"))
    ]


@pytest.mark.campaign
def test_every_command_prints_what_the_page_shows(printed):
    """Each command of the page succeeds in its order, and prints the lines that stand below it."""
    found = steps(PAGE.read_text("utf-8"))

    assert [[] for _ in found] == [missing(step.shown, text) for step, text in zip(found, printed, strict=True)]


def test_it_installs_as_the_readme_says():
    """The one command that is not run here installs what the README installs."""
    installs = re.findall(r"^pip install -r .+?$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert [] == [command for command in installs if command not in (ROOT / "README.md").read_text("utf-8")]
    assert installs


def test_a_line_that_is_not_printed_is_found():
    """A line that a program does not print, or prints too early, is missing."""
    assert ["c", "a"] == missing(("b", "c", "a"), "a\nb\n")
