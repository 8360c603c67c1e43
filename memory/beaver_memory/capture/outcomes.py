"""Finds what fixed a failure: a command that failed and then succeeded within one turn. Pure.

The statement names the command and the files that changed between, as the tools report them. It quotes neither output
of tools nor claims of the assistant.
"""

from collections.abc import Iterable, Sequence

import attrs
from attrs import field

from beaver_memory.capture.records import Candidate
from beaver_memory.capture.rules import clipped

CONFIDENCE = 0.8
LONGEST_COMMAND = 160
MOST_FILES = 6


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """How one call of a tool ended.

    Attributes:
        tool: the name of the tool.
        command: what it ran; empty for a tool that runs no command.
        succeeded: whether it succeeded.
        files: the paths that it was given.
        external: its output comes from outside.
    """

    tool: str
    command: str = field(default="", repr=False)
    succeeded: bool = True
    files: tuple[str, ...] = field(default=(), converter=_texts)
    external: bool = False


def fixes_of(outcomes: Sequence[ToolOutcome]) -> tuple[Candidate, ...]:
    """Return a fix for each command that failed, and succeeded after files were changed."""
    failed: dict[tuple[str, str], int] = {}
    found = {}
    for place, each in enumerate(outcomes):
        key = (each.tool, each.command)
        if not each.command or each.external:
            continue
        if not each.succeeded:
            failed.setdefault(key, place)
        elif (begin := failed.pop(key, None)) is not None:
            found[key] = _fix(each, outcomes[begin + 1 : place])
    return tuple(each for each in found.values() if each is not None)


def _fix(passed: ToolOutcome, between: Sequence[ToolOutcome]) -> Candidate | None:
    files = list(dict.fromkeys(file for each in between if each.succeeded and not each.external for file in each.files))
    if not files:
        return None
    shown = ", ".join(files[:MOST_FILES]) + (" and others" if len(files) > MOST_FILES else "")
    command = clipped(" ".join(passed.command.split()), LONGEST_COMMAND)
    text = f"`{command}` failed, and passes after changes to {shown}."
    return Candidate(kind="fix", text=text, confidence=CONFIDENCE, cues=("verified_outcome",))
