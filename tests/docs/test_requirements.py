"""Every requirement of the host has an id of its own and names tests that are there."""

import ast
import re
from functools import cache
from pathlib import Path

import attrs
import pytest

from beaver_memory.testing.stores import STORE_CASES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
SOURCES = ("000", "001", "002", "003", "004")
OPEN = re.compile(r"open: \S.+")
OF_CASES = "test_the_store_conforms"
CASES = frozenset(f"{OF_CASES}[sqlite-{case.name}]" for case in STORE_CASES)


@attrs.frozen(kw_only=True)
class Row:
    """One requirement: its id, what it says, what shows it."""

    id: str
    what: str
    shown: tuple[str, ...]


def rows(text: str) -> list[Row]:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return [Row(id=id_, what=what, shown=tuple(shown.split("; "))) for id_, what, shown in cells if id_ != "id"]


@cache
def functions(path: Path) -> set[str]:
    """Return the names of a module's test functions."""
    found = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def fault(shown: str, root: Path = ROOT) -> str | None:
    """Return the fault of an entry of the last column, or `None`."""
    if OPEN.fullmatch(shown):
        return None
    path, _, test = shown.strip("`").partition("::")
    name = OF_CASES if test in CASES else test
    if shown != f"`{shown.strip('`')}`" or not (root / path).is_file():
        return f"{shown}: no such file"
    if name and (not name.startswith("test_") or name not in functions(root / path)):
        return f"{shown}: no such test"
    if test == OF_CASES:
        return f"{shown}: name the case"
    return f"{shown}: name the test" if path.startswith("tests/") and not name else None


ROWS = rows(PAGE.read_text("utf-8"))


def test_ids():
    """Ids are well-formed, unique and in order, from the five sources."""
    ids = [row.id for row in ROWS]

    assert [] == [each for each in ids if not re.fullmatch(r"\d{3}-\d{3}", each)]
    assert sorted(set(ids)) == ids
    assert set(SOURCES) == {each[:3] for each in ids}


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("000", [*range(1, 157)]),
        ("001", [*range(1, 121)]),
        ("002", [*range(1, 132)]),
        ("003", [*range(1, 120), *range(132, 136)]),
        ("004", [*range(1, 239)]),
    ],
)
def test_no_statement_is_left_out(source, numbers):
    """Every statement of a source has its row; the numbers between are none."""
    assert numbers == [int(row.id[4:]) for row in ROWS if row.id.startswith(source)]


def test_every_row_says_something():
    """No cell is empty."""
    assert [] == [row.id for row in ROWS if not row.what or not all(row.shown)]


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_shown(source):
    """Every test that a requirement names exists, and an open requirement says why."""
    found = [fault(shown) for row in ROWS if row.id.startswith(source) for shown in row.shown]

    assert [] == [each for each in found if each]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("`tests/test_a.py::test_a`", None),
        ("`docs/a.md`", None),
        ("open: the loop", None),
        ("open: ", "open: : no such file"),
        ("`tests/test_b.py::test_a`", "`tests/test_b.py::test_a`: no such file"),
        ("tests/test_a.py::test_a", "tests/test_a.py::test_a: no such file"),
        ("`tests/test_a.py::test_b`", "`tests/test_a.py::test_b`: no such test"),
        ("`tests/test_a.py::helper`", "`tests/test_a.py::helper`: no such test"),
        ("`tests/test_a.py`", "`tests/test_a.py`: name the test"),
        (f"`tests/test_a.py::{OF_CASES}[sqlite-touched]`", None),
        (f"`tests/test_a.py::{OF_CASES}[none]`", f"`tests/test_a.py::{OF_CASES}[none]`: no such test"),
        (f"`tests/test_a.py::{OF_CASES}`", f"`tests/test_a.py::{OF_CASES}`: name the case"),
    ],
)
def test_faults(tmp_path, shown, expected):
    """An entry that names nothing, no test, no case of a suite, or a file that is not there is found."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").touch()
    (tmp_path / "tests" / "test_a.py").write_text(
        f"async def test_a(): ...\ndef helper(): ...\ndef {OF_CASES}(): ...\n"
    )

    assert expected == fault(shown, tmp_path)


def test_rows():
    """A table is read by its cells, without its head."""
    page = "| id | what | shown by |\n|---|---|---|\n| 000-001 | a thing | `a`; open: b |\n"

    assert [Row(id="000-001", what="a thing", shown=("`a`", "open: b"))] == rows(page)
