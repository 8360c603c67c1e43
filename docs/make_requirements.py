#!/usr/bin/env python3
"""Writes `docs/requirements.md` from `docs/requirements.jsonl` and the markers on tests. Run it with `make docs`.

A test names the statements that it shows: `@pytest.mark.shows("002-053")`. The marker stands above the test, in a
`pytest.param` of its cases, or in a dictionary of the module whose keys are cases and which the test's decorators
read. Markers are read from the text of the modules, so no test is imported.
"""

import ast
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
STATEMENTS = ROOT / "docs" / "requirements.jsonl"
PAGE = ROOT / "docs" / "requirements.md"
TESTS = ("tests", "*/tests", "plugins/*/tests", "examples/*/tests")
INTRODUCTION = """\
# Requirements

This page lists every statement of the project's five sources (000 to 004) with the tests that show it and with what
is open. `make docs` makes it from `docs/requirements.jsonl`, which has the statements, and from the markers
`@pytest.mark.shows("000-001")` on tests. A statement without a test is open. A case of a test stands in brackets.

A marker does not prove that its test shows the statement: when you add or review one, break the stated behaviour and
see the test fail. The sources have no statements about adapters. If 000 and 001 disagree, 000 decides."""


class Statement(NamedTuple):
    """One statement of a source: its id, its short wording, and what of it is open, with the reason."""

    id: str
    what: str
    open: str = ""


class Marker(NamedTuple):
    """The statements that one marker names, and the case that it belongs to, if it has a name."""

    line: int
    statements: tuple[str, ...]
    case: str


def statements(path: Path = STATEMENTS) -> list[Statement]:
    """Return every statement."""
    return [Statement(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def showing(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the tests that show each statement, by id."""
    found = defaultdict(list)
    modules = {path for folder in TESTS for path in root.glob(f"{folder}/**/test_*.py")}
    for path in sorted(modules):
        for id_, test in _shown(path.read_text("utf-8"), path.relative_to(root).as_posix()):
            found[id_].append(test)
    return found


def page(listed: list[Statement], shown: dict[str, list[str]]) -> str:
    """Return the text of the page.

    Raises:
        LookupError: a marker names no statement.
    """
    unknown = [f"{test} shows {id_}" for id_ in shown.keys() - {each.id for each in listed} for test in shown[id_]]
    if unknown:
        raise LookupError(f"no such statement: {', '.join(sorted(unknown))}")
    sections = [
        "\n".join([f"## {source}\n\n| id | what | shown by |\n|---|---|---|", *(_row(each, shown) for each in of_it)])
        for source, of_it in itertools.groupby(listed, key=lambda each: each.id[:3])
    ]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def _row(statement: Statement, shown: dict[str, list[str]]) -> str:
    cells = [f"`{test}`" for test in shown.get(statement.id, [])]
    if statement.open or not cells:
        cells.append(f"open: {statement.open}" if statement.open else "open")
    return f"| {statement.id} | {statement.what} | {'; '.join(cells)} |"


def _shown(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the id of a statement and a test that shows it, for each marker of a module."""
    if "mark.shows" not in text:
        return
    tree = ast.parse(text)
    constants = {
        target.id: list(_markers(node))
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    on_tests = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for marker in _of_test(node, constants):
                on_tests.add(marker)
                test = f"{path}::{node.name}[{marker.case}]" if marker.case else f"{path}::{node.name}"
                yield from ((id_, test) for id_ in marker.statements)
    lost = sorted(marker.line for marker in {*_markers(tree)} - on_tests)
    if lost:
        raise LookupError(f"{path}: the markers in lines {lost} are on no test")


def _of_test(test: ast.FunctionDef | ast.AsyncFunctionDef, constants: dict[str, list[Marker]]) -> Iterator[Marker]:
    for decorator in test.decorator_list:
        yield from _markers(decorator)
        names = {node.id for node in ast.walk(decorator) if isinstance(node, ast.Name)}
        yield from itertools.chain.from_iterable(constants.get(name, []) for name in sorted(names))


def _markers(node: ast.AST, case: str = "") -> Iterator[Marker]:
    """Yield the markers in a part of a module, each with the case around it."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="shows")):
            yield Marker(node.lineno, tuple(ast.literal_eval(each) for each in node.args), case)
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                yield from _markers(value, _name(key))
        case ast.Call(func=ast.Attribute(attr="param")):
            named = next((each.value for each in node.keywords if each.arg == "id"), None)
            for child in ast.iter_child_nodes(node):
                yield from _markers(child, _name(named))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _markers(child, case)


def _name(node: ast.AST | None) -> str:
    """Return the name of a case, given as a text or as the function that is the case."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Attribute(attr=text) | ast.Name(id=text):
            return text
    return ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(statements(), showing()), encoding="utf-8")


if __name__ == "__main__":
    main()
