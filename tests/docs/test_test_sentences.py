"""Every test says in a sentence what it shows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules() -> Iterator[Path]:
    yield from (ROOT / "tests").rglob("test_*.py")
    yield from (ROOT / "plugins").glob("*/tests/**/test_*.py")
    for each in ("memory", "toolkit"):
        yield from (ROOT / each / "tests").glob("test_*.py")
    yield from (ROOT / "examples").glob("*/tests/**/test_*.py")


def silent_tests(source: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not (ast.get_docstring(node) or "").strip()
    ]


def test_every_test_has_its_sentence():
    """No test function in the repository lacks a docstring."""
    silent = {str(path.relative_to(ROOT)): silent_tests(path.read_text("utf-8")) for path in modules()}

    assert {} == {path: names for path, names in silent.items() if names}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_a():\n    pass", ["test_a"]),
        ("class TestB:\n    async def test_b(self):\n        ''", ["test_b"]),
        ("def test_c():\n    'Shows it.'", []),
        ("def helper():\n    pass", []),
    ],
)
def test_a_test_without_sentence_is_found(source, expected):
    """Plain tests, coroutine tests and methods are looked at; helpers are not."""
    assert expected == silent_tests(source)


def test_tests_are_found():
    """The walk finds this module, so that an empty result means something."""
    assert Path(__file__) in set(modules())
