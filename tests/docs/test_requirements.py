"""`docs/requirements.md` has every statement of the sources, with the tests whose markers name it."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CASES = """\
CASES = [pytest.param(1, id="one", marks=pytest.mark.shows("000-003"))]
SUITE = {kit.two: pytest.mark.shows("000-004")}
"""


@pytest.fixture(scope="module")
def script():
    """Return what the script that makes the page defines."""
    return runpy.run_path(str(DOCS / "make_requirements.py"))


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a module of tests and returns the folder of its project."""

    def write(text):
        (tmp_path / "part" / "tests").mkdir(parents=True)
        (tmp_path / "part" / "tests" / "test_a.py").write_text(text)
        return tmp_path

    return write


def test_the_page_is_what_the_markers_say(script):
    """The page is the one that `make docs` writes, and each marker names a statement."""
    assert (DOCS / "requirements.md").read_text("utf-8") == script["page"](script["statements"](), script["showing"]())


@pytest.mark.parametrize(("source", "last"), [("000", 156), ("001", 120), ("002", 131), ("003", 135), ("004", 238)])
def test_every_statement_is_listed_once(script, source, last):
    """The statements of a source are numbered from 1, in order and without a gap."""
    expected = [f"{source}-{number:03}" for number in range(1, last + 1)]

    assert expected == [each.id for each in script["statements"]() if each.id.startswith(source)]


def test_every_statement_says_something(script):
    """A statement is one line of text, and so is the reason why it is open."""
    assert [] == [
        each.id
        for each in script["statements"]()
        if not re.fullmatch(r"[^|\n]+", each.what) or re.search(r"[|\n]", each.open)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('@pytest.mark.shows("000-001", "000-002")\nasync def test_a(): ...', {"000-001": "test_a", "000-002": "test_a"}),
        ('@pytest.mark.parametrize("a", [pytest.param(1, marks=pytest.mark.shows("000-001"))])\ndef test_a(a): ...', {"000-001": "test_a"}),
        (f'{CASES}\n@pytest.mark.parametrize("a", CASES)\ndef test_a(a): ...\n@at(SUITE)\ndef test_b(): ...', {"000-003": "test_a[one]", "000-004": "test_b[two]"}),
        ("def test_a(): ...", {}),
    ],
    ids=["above a test", "on a case", "in a constant", "none"],
)  # fmt: skip
def test_where_markers_stand(script, written, text, expected):
    """A marker stands above a test, on one of its cases, or in a constant that its decorators read."""
    found = script["showing"](written(text))

    assert {id_: [f"part/tests/test_a.py::{test}"] for id_, test in expected.items()} == found


@pytest.mark.parametrize(
    "text",
    ['@pytest.mark.shows("000-001")\ndef helper(): ...', CASES, '@pytest.mark.shows(\n"000-001")\nclass Thing: ...'],
)
def test_a_marker_on_no_test(script, written, text):
    """A marker that no test bears is refused, with its place."""
    with pytest.raises(LookupError, match=r"part/tests/test_a\.py: the markers in lines \[.+\] are on no test"):
        script["showing"](written(text))


def test_a_marker_for_no_statement(script):
    """A marker whose statement is not listed is refused, with its test."""
    with pytest.raises(LookupError, match=r"no such statement: a\.py::test_a shows 000-002"):
        script["page"]([script["Statement"]("000-001", "a thing")], {"000-002": ["a.py::test_a"]})


def test_rows(script):
    """A row names each test and the open part; a statement without a test is open, with or without a reason."""
    listed = [
        script["Statement"]("000-001", "a thing"),
        script["Statement"]("000-002", "two things", "the second"),
        script["Statement"]("000-003", "no thing"),
        script["Statement"]("001-001", "nothing", "no user"),
    ]
    rows = """\
## 000

| id | what | shown by |
|---|---|---|
| 000-001 | a thing | `a.py::test_a`; `a.py::test_b` |
| 000-002 | two things | `a.py::test_b`; open: the second |
| 000-003 | no thing | open |

## 001

| id | what | shown by |
|---|---|---|
| 001-001 | nothing | open: no user |
"""
    text = script["page"](listed, {"000-001": ["a.py::test_a", "a.py::test_b"], "000-002": ["a.py::test_b"]})

    assert f"{script['INTRODUCTION']}\n\n{rows}" == text
