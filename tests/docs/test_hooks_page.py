"""`docs/reference/hooks.md` is what the docstrings of the hooks say, and they say what an author needs."""

import inspect
import re
import runpy
from pathlib import Path

import pytest

from beaver_hostspecs import hooks

DOCS = Path(__file__).parents[2] / "docs"
SPECS = {
    name: spec for name, spec in inspect.getmembers(hooks, inspect.isfunction) if spec.__module__ == hooks.__name__
}
EVERY_HOOK = pytest.mark.parametrize("name", SPECS)


@pytest.fixture(scope="module")
def script():
    """Return what the script that makes the page defines."""
    return runpy.run_path(str(DOCS / "make_hooks.py"))


@pytest.fixture(scope="module")
def sections(script):
    """Return the text under each heading that is code, by heading, as the docstrings say it now."""
    parts = re.split(r"^### `(.+)`$", script["page"](), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def needed(spec):
    """Return what the docstring of a hook must hold."""
    signature = inspect.signature(spec)
    answers = bool(signature.parameters) and inspect.iscoroutinefunction(spec)
    returns = ["Returns:"] if signature.return_annotation is not None or answers else []
    return ["Called ", "Ordering:", "On failure", *(["Args:"] if signature.parameters else []), *returns]


@pytest.mark.shows("003-113", "003-114", "003-115")
def test_the_page_is_what_the_docstrings_say(script):
    """A hook that is missing on the page, or stands there with another text or signature, is found: run `make docs`."""
    assert script["page"]() == (DOCS / "reference" / "hooks.md").read_text("utf-8")


def test_the_script_writes_the_page(script, tmp_path, monkeypatch):
    """`make docs` writes that page and nothing else."""
    monkeypatch.setitem(script["main"].__globals__, "PAGE", tmp_path / "hooks.md")

    script["main"]()

    assert {"hooks.md": script["page"]()} == {each.name: each.read_text("utf-8") for each in tmp_path.iterdir()}


def test_every_hook_is_on_the_page(script, sections):
    """The headings are exactly the signatures of the hooks: none is missing, changed or made up."""
    assert sorted(map(script["headline"], SPECS.values())) == sorted(sections)


def test_a_signature_as_it_stands_on_the_page(script):
    """A heading has the hook's arguments and answer, with the types' own names and without their modules."""
    assert "before_prompt(turn: Turn, report: Report) -> Contribution | None" == script["headline"](hooks.before_prompt)


def test_the_guide_is_on_the_page(script):
    """What the docstring of the module says about all hooks stands before the first of them."""
    _, *guide = inspect.getdoc(hooks).split("\n\n")
    above = " ".join(script["page"]().partition("\n## ")[0].split())

    assert [] == [text for text in guide if " ".join(text.split()) not in above]


@EVERY_HOOK
def test_its_kind(name, script, sections):
    """The page says which hooks are coroutine functions and which are plain ones."""
    expected = "Coroutine function." if inspect.iscoroutinefunction(SPECS[name]) else "Plain function."

    assert sections[script["headline"](SPECS[name])].strip().startswith(expected)


@EVERY_HOOK
def test_its_docstring_is_complete(name):
    """A hook's docstring says when it is called, what it gets, in which order, what it returns, and what a failure does."""
    doc = inspect.getdoc(SPECS[name])

    assert [] == [part for part in needed(SPECS[name]) if part not in doc]


@EVERY_HOOK
def test_its_section_says_the_same(name, script, sections):
    """Whatever the docstring has a section for, the page has too."""
    text = sections[script["headline"](SPECS[name])]
    labels = [part.replace("Args:", "Arguments").strip(" :") for part in needed(SPECS[name])]

    assert [] == [label for label in labels if f"**{label}" not in text]


@EVERY_HOOK
def test_its_arguments(name, script, sections):
    """The docstring, and so the page, explains each argument, in order."""
    text = sections[script["headline"](SPECS[name])]

    assert list(inspect.signature(SPECS[name]).parameters) == re.findall(r"^- `(\w+)`:", text, re.MULTILINE)


def test_an_argument_without_a_text_is_found(script):
    """A list of arguments that explains nothing makes no page."""
    with pytest.raises(ValueError, match="no `name: text`"):
        list(script["_arguments"]("Args:\n    turn\n"))
