"""The check of the house style finds gerund modules and prose that hides who acts, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "house_style.py"


@pytest.fixture
def project(tmp_path):
    """A project with the script and one package."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "house_style.py").write_text(SCRIPT.read_text("utf-8"))
    (tmp_path / "beaver_hooks").mkdir()
    return tmp_path


def run(project, *arguments):
    done = subprocess.run(
        [sys.executable, project / "tools" / "house_style.py", project / "beaver_hooks", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("lending.py", '"""Lends."""\n', "1: the name `lending` is a gerund; use a noun that a newcomer would guess"),
        ("a.py", '"""Tells somebody."""\n', "1: `somebody`: name the user, the model, the caller, or the thing itself"),
        ("a.py", "A = 1\n# Nobody waits.\n", "2: `Nobody`: name the user, the model, the caller, or the thing itself"),
        (
            "a.py",
            '"""One.\n\nWhat is there.\n"""\n',
            "3: `What is`: name the user, the model, the caller, or the thing itself",
        ),
        ("page.md", "One.\n\nIt is told.\n", "3: `is told`: name the user, the model, the caller, or the thing itself"),
        (
            "reads.sql",
            "-- name: one\nSELECT 1 -- for nobody\n",
            "2: `nobody`: name the user, the model, the caller, or the thing itself",
        ),
        (
            "page.md",
            "<!-- begin: written by make -->\nnobody\n<!-- end: written by make -->\nIt is said.\n",
            "4: `is said`: name the user, the model, the caller, or the thing itself",
        ),
    ],
)
def test_a_finding(project, name, text, finding):
    """A finding names the file, the line and the remedy, and the exit code is 1."""
    (project / "beaver_hooks" / name).write_text(text)

    assert (1, f"beaver_hooks/{name}:{finding}\n", "") == run(project)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pool.py", '"""Lends connections to readers."""\nTEXT = "nobody is told"\n'),
        ("page.md", "Run `nobody`.\n\n```sh\necho somebody\n```\n"),
        ("test_lending.py", '"""Shows that a reader waits."""\n'),
        ("reads.sql", "-- name: what is\nSELECT 'nobody'\n"),
    ],
)
def test_what_is_left_alone(project, name, text):
    """Code, quoted code, names of tests and names of queries are no findings."""
    (project / "beaver_hooks" / name).write_text(text)

    assert (0, "", "") == run(project)


def test_the_count(project):
    """The numbers are printed without the places."""
    (project / "beaver_hooks" / "lending.py").write_text('"""Somebody waits."""\n' * 2)
    code, out, _ = run(project, "--count")

    assert (0, "gerund modules 1; dialect in 2 places, 2 of them outside tests,") == (code, out.splitlines()[0])
