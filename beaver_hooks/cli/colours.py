"""Colours of words in the output: the level of a finding, the state of a plugin, the role of a speaker."""

import os
import re
from collections.abc import Callable, Mapping
from typing import TextIO

import click

Paint = Callable[[str], str]
"""Colours a text that is safe for a terminal. It adds and removes no word."""

STATES = {"ok": "green", "degraded": "yellow", "unavailable": "red", "disabled": "cyan"}
LEVELS = {"ok": "green", "warning": "yellow", "problem": "red"}
ROLES = {"user": "cyan", "assistant": "green", "hidden": "magenta", "tool": "magenta"}


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal that understands escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def takes_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them (https://no-color.org)."""
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def painter(pattern: str, colours: Mapping[str, str]) -> Paint:
    """Return a `Paint` for the group `word` of each match, by the colour of that word."""
    compiled = re.compile(pattern, re.MULTILINE)

    def paint(text: str) -> str:
        return compiled.sub(lambda found: _painted(found, colours), text)

    return paint


def whole(colour: str) -> Paint:
    """Return a `Paint` for each line of a text."""

    def paint(text: str) -> str:
        return "\n".join(click.style(line, fg=colour) if line else line for line in text.split("\n"))

    return paint


def _painted(found: re.Match[str], colours: Mapping[str, str]) -> str:
    first, last = (each - found.start() for each in found.span("word"))
    return found[0][:first] + click.style(found["word"], fg=colours[found["word"]]) + found[0][last:]


def _any(words: Mapping[str, str]) -> str:
    return f"(?P<word>{'|'.join(words)})"


# Anchored at the place of our own words: texts of plugins and people are indented, and keep their colour.
level = painter(rf"^{_any(LEVELS)} ", LEVELS)
state = painter(rf"^\S+ +{_any(STATES)}\b", STATES)
listed_state = painter(rf"^\S.*? \(fail-(?:open|closed)\): {_any(STATES)}\b", STATES)
role = painter(rf"^{_any(ROLES)}(?=[ ,]|$)", ROLES)
hit_role = painter(rf"^\S+  {_any(ROLES)}(?=, )", ROLES)
