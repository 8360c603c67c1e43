#!/usr/bin/env python3
"""Writes `docs/reference/hooks.md` from the docstrings of `beaver_hostspecs.hooks`. Run it with `make docs`."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from beaver_hostspecs import hooks

PAGE = Path(__file__).parent / "reference" / "hooks.md"
WIDTH = 120
INTRODUCTION = """\
Every hook that a plugin may implement, with its signature as the heading.
[Writing a plugin](../tutorial/writing-a-plugin.md) goes through it step by step. `make docs` makes this page from the
docstrings of `beaver_hostspecs.hooks`, where your editor finds the same text: change it there."""
DEADLINES = """\
Deadlines are declared per hook in `describe`; without one the host's default applies, and never more than the host's
cap. Both are [settings of the host](configuration.md)."""
HEADING = re.compile(r"# --- (?P<title>.+?) -+")
DEFINITION = re.compile(r"(?:async )?def (?P<name>\w+)\(")
LABEL = re.compile(r"(?P<label>Called\b|Ordering:|On failure\b[^:]*:|Returns:)\s*")
ARGUMENT = re.compile(r"(?P<name>\w+): (?P<text>.+)", re.DOTALL)


def page() -> str:
    """Return the text of the page."""
    _, *guide = _paragraphs(hooks)
    return "\n\n".join(["# Hooks", INTRODUCTION, *guide, filled(DEADLINES), *_sections()]) + "\n"


def headline(spec: Callable[..., object]) -> str:
    """Return a hook's name and its signature as `inspect.signature` prints it, without the modules of types."""
    signature = re.sub(r"\b(?:[a-z_]\w*\.)+", "", str(inspect.signature(spec)))
    return f"{spec.__name__}{signature}"


def filled(text: str, *, indent: str = "") -> str:
    """Return a paragraph in lines of the page's width; all lines after the first are indented."""
    return textwrap.fill(
        " ".join(text.split()), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _sections() -> Iterator[str]:
    """Yield the rest of the page in the order of the source: the headings, and a section for each hook."""
    for line in inspect.getsource(hooks).splitlines():
        if heading := HEADING.fullmatch(line):
            yield f"## {heading['title']}"
        elif definition := DEFINITION.match(line):
            yield from _section(getattr(hooks, definition["name"]))


def _section(spec: Callable[..., object]) -> Iterator[str]:
    kind = "Coroutine function." if inspect.iscoroutinefunction(spec) else "Plain function."
    yield f"### `{headline(spec)}`"
    first, *others = _paragraphs(spec)
    yield filled(f"{kind} {first}")
    yield from others


def _paragraphs(documented: object) -> Iterator[str]:
    """Yield the paragraphs of a docstring in the form of the page."""
    for text in (inspect.getdoc(documented) or "").split("\n\n"):
        if text.startswith("Args:"):
            yield "**Arguments**"
            yield "\n".join(_arguments(text))
        else:
            yield filled(LABEL.sub(r"**\g<label>** ", text, count=1) if LABEL.match(text) else text)


def _arguments(text: str) -> Iterator[str]:
    """Yield one list item for each argument of an `Args:` section."""
    body = textwrap.dedent(text.partition("\n")[2])
    for entry in re.split(r"\n(?=\S)", body):
        argument = ARGUMENT.fullmatch(entry)
        if argument is None:
            raise ValueError(f"no `name: text` in a list of arguments: {entry!r}")
        yield filled(f"- `{argument['name']}`: {argument['text']}", indent="  ")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
