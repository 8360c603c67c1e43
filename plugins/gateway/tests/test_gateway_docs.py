"""The page about the gateway is true."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import attrs
import pytest

from beaver_hooks.config.converter import structure
from beaver_hooks.config.type_hints import key_of
from beaver_hooks_gateway import GatewaySettings
from beaver_hooks_gateway.plugin import RULE
from beaver_hooks_gateway.settings import PATH

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGE = (ROOT / "docs" / "reference" / "gateway.md").read_text("utf-8")
README = (HERE.parent / "README.md").read_text("utf-8")
SOURCES = "".join(
    path.read_text("utf-8") for path in sorted((HERE.parent / "src" / "beaver_hooks_gateway").glob("*.py"))
)


def part(title):
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


@cache
def names_of(path):
    tree = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.name for node in tree if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_bullet_has_its_tests():
    """Each of the 49 bullets names tests, and every named test exists."""
    rows = re.findall(r"^\| (00[01] .+?) \| (.+) \|$", part("The tests of the two designs"), re.MULTILINE)
    named = [name for _, shown in rows for name in re.findall(r"`([\w/]+\.py::\w+)`", shown)]
    missing = []
    for name in named:
        file, _, test = name.partition("::")
        path = ROOT / file if "/" in file else HERE / file
        missing += [] if path.is_file() and test in names_of(path) else [name]

    assert ([], []) == (missing, [bullet for bullet, shown in rows if "::test_" not in shown])
    assert (27, 22) == tuple(sum(bullet.startswith(source) for bullet, _ in rows) for source in ("000", "001"))


def test_every_setting_is_documented():
    """The table has every setting with its name in the file, and no other."""
    cells = re.findall(r"^\| (`.+?`) \|", part("Settings"), re.MULTILINE)
    documented = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}

    assert {key_of(each) for each in attrs.fields(GatewaySettings)} == documented


def test_every_event_is_documented():
    """The table has every event that the code names."""
    documented = {*re.findall(r"^\| `(memory_gateway_\w+)`", part("Audit events"), re.MULTILINE)}

    assert {*re.findall(r'"(memory_gateway_\w+)"', SOURCES)} == documented


@pytest.mark.shows("000-079")
def test_the_rule_is_shown_as_it_is():
    """The page quotes the rule word by word."""
    assert RULE in " ".join(part("What comes back").split())


@pytest.mark.shows("000-153")
def test_the_examples_are_complete():
    """The configurations of both pages load, with the key from the environment."""
    for text in (PAGE, README):
        (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        section = json.loads(block)["memory"]["gateway"]
        settings = structure(GatewaySettings, section, PATH, environment={"MEMORY_GATEWAY_KEY": "uk_of_the_page"})
        assert () == settings.missing


@pytest.mark.shows("000-151", "000-152", "000-154", "000-155", "000-156", "001-118", "001-119", "001-120")
def test_the_readme_says_what_users_must_know():
    """The README names the default, degradation, required fields, other modes, the secret and the reload."""
    needed = ["`hybrid`, both memories", "left out, with one warning", "are required", '"mode": "memory_gateway"',
              '"mode": "curated"', "`userKey` is a secret", "restart the program"]  # fmt: skip

    assert [] == [each for each in needed if each not in README]
