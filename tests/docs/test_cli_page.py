"""`docs/reference/cli.md` is what `--help` prints."""

import re
import runpy
from pathlib import Path

import pytest

from beaver_hooks.cli.app import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    """Return what the script that makes the page defines."""
    return runpy.run_path(str(DOCS / "make_cli.py"))


def test_the_page_is_what_help_prints(script):
    """A command or an option that is missing on the page, or stands there with another text, is found: `make docs`."""
    assert script["page"]() == (DOCS / "reference" / "cli.md").read_text("utf-8")


def test_the_script_writes_the_page(script, tmp_path, monkeypatch):
    """`make docs` writes that page and nothing else."""
    monkeypatch.setitem(script["main"].__globals__, "PAGE", tmp_path / "cli.md")

    script["main"]()

    assert {"cli.md": script["page"]()} == {each.name: each.read_text("utf-8") for each in tmp_path.iterdir()}


def test_every_command_has_its_heading(script):
    """The commands stand in the order of the help, each with its own below it."""
    found = re.findall(r"^## beaver (\S+)$", script["page"](), re.MULTILINE)

    assert [*COMMANDS] == found


def test_columns(script):
    """Help fits into 80 columns."""
    blocks = re.findall(r"^```text\n(.*?)^```", script["page"](), re.MULTILINE | re.DOTALL)

    assert [] == [line for block in blocks for line in block.splitlines() if len(line) > 80]
