"""The page that walks a turn through the source names functions and files that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "life-of-a-turn.md").read_text("utf-8")
STEPS = re.findall(r"`([\w.]+)`\s+in\s+`([\w/]+\.py)`", PAGE)


def names(path):
    """Return the classes, their methods, and the functions of a file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            found.update(f"{node.name}.{each.name}" for each in node.body if hasattr(each, "name"))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
    return found


@pytest.mark.parametrize(("name", "path"), STEPS)
def test_each_step_exists(name, path):
    """The file of each step defines the name."""
    assert name in names(path)


@pytest.mark.shows("003-120")
def test_the_page_names_every_package_on_the_way():
    """The page passes the packages that a turn passes, and fits on a page."""
    packages = {Path(path).parts[1] for _, path in STEPS}

    assert {"cli", "agent", "host.py", "runtime.py", "plugins", "turns", "receipts", "tools", "audit"} == packages
    assert len(STEPS) > 20
    assert PAGE.count("\n") < 80
