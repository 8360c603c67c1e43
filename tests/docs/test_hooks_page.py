"""`docs/hooks.md` documents every hook with its signature, and the docstrings say as much."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from beaver_hostspecs import hooks

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
SPECS = {
    name: spec for name, spec in inspect.getmembers(hooks, inspect.isfunction) if spec.__module__ == hooks.__name__
}
EVERY_HOOK = pytest.mark.parametrize("name", SPECS)


def headline(spec: Callable[..., object]) -> str:
    """Return a hook's name and signature as `inspect.signature` prints it, types without their modules."""
    signature = re.sub(r"\b(?:[a-z_]\w*\.)+", "", str(inspect.signature(spec)))
    return f"{spec.__name__}{signature}"


def sections(page: str) -> dict[str, str]:
    """Return the text under each heading that is code, by heading."""
    parts = re.split(r"^### `(.+)`$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def section(name: str) -> str:
    return sections(PAGE.read_text("utf-8"))[headline(SPECS[name])]


def needed(spec: Callable[..., object]) -> list[str]:
    """Return what the docstring of a hook must hold."""
    signature = inspect.signature(spec)
    answers = bool(signature.parameters) and inspect.iscoroutinefunction(spec)
    returns = ["Returns:"] if signature.return_annotation is not None or answers else []
    return ["Called ", "Ordering:", "On failure", *(["Args:"] if signature.parameters else []), *returns]


def test_every_hook_is_on_the_page():
    """The headings are exactly the signatures of the hooks: none is missing, changed or made up."""
    assert sorted(map(headline, SPECS.values())) == sorted(sections(PAGE.read_text("utf-8")))


@EVERY_HOOK
def test_its_kind(name):
    """The page says which hooks are coroutine functions and which are plain ones."""
    expected = "Coroutine function." if inspect.iscoroutinefunction(SPECS[name]) else "Plain function."

    assert section(name).strip().startswith(expected)


@EVERY_HOOK
def test_its_docstring_is_complete(name):
    """A hook's docstring says when it is called, what it gets, in which order, what it returns, and what a failure does."""
    doc = inspect.getdoc(SPECS[name])

    assert [] == [part for part in needed(SPECS[name]) if part not in doc]


@EVERY_HOOK
def test_its_section_says_the_same(name):
    """Whatever the docstring has a section for, the page has too."""
    text = section(name)
    labels = [part.replace("Args:", "Arguments").strip(" :") for part in needed(SPECS[name])]

    assert [] == [label for label in labels if f"**{label}" not in text]


@EVERY_HOOK
def test_its_arguments(name):
    """The page explains each argument, in order."""
    assert list(inspect.signature(SPECS[name]).parameters) == re.findall(r"^- `(\w+)`:", section(name), re.MULTILINE)


def test_a_changed_signature_is_found():
    """A page whose heading has another signature is not taken for the hook's."""
    page = "### `start(now: bool) -> None`\n\nCoroutine function."

    assert headline(SPECS["start"]) not in sections(page)
