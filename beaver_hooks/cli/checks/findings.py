"""The findings of an examination, each `ok`, a `warning` or a `problem`, and their output."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import attrs
from attrs import field

from beaver_hooks.cli import terminal
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.terminal import show
from beaver_hooks.cli.text_format import counted, filled
from beaver_hostspecs import scrub

Level = Literal["ok", "warning", "problem"]

COMMAND = "run: "
"""The beginning of a remedy that is only a command."""

_INDENT = " " * 9
"""As wide as a level and its separator."""


def _scrubbed(text: str) -> str:
    return scrub(text)


@attrs.frozen(kw_only=True)
class Finding:
    """The result of one examination.

    Attributes:
        subject: the examined subject.
        level: whether it is in order.
        text: its state. Contains no credential, and no value of a configuration.
        remedy: advice for the user; empty if no action is needed.
    """

    subject: str
    level: Level
    text: str = field(converter=_scrubbed)
    remedy: str = field(default="", converter=_scrubbed)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return attrs.asdict(self)


def ok(subject: str, text: str) -> Finding:
    """Return the finding that a subject is in order."""
    return Finding(subject=subject, level="ok", text=text)


def warning(subject: str, text: str, remedy: str) -> Finding:
    """Return the finding of an oddity, which may be intended."""
    return Finding(subject=subject, level="warning", text=text, remedy=remedy)


def problem(subject: str, text: str, remedy: str) -> Finding:
    """Return the finding of a fault."""
    return Finding(subject=subject, level="problem", text=text, remedy=remedy)


def from_error(subject: str, error: Exception, remedy: str) -> Finding:
    """Return a `BeaverError` as a finding; `remedy` is for one that names none after a semicolon."""
    text, found, own = str(error).rpartition("; ")
    return problem(subject, text, own) if found else problem(subject, own, remedy)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if there is a problem, else 0. A warning is no problem."""
    return FOUND if any(each.level == "problem" for each in findings) else 0


def report(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings: as one JSON object, or in lines with a summary at the end."""
    if as_json:
        found = [each.to_json() for each in findings]
        show(json.dumps({"ok": not exit_code(findings), "findings": found}))
        return
    for each in findings:
        show("\n".join(_lines(each)), paint=terminal.level)
    show(f"\n{_sum(findings)}")


def _lines(finding: Finding) -> Iterable[str]:
    yield filled(f"{finding.level:<9}{finding.subject}: {finding.text}", indent=_INDENT)
    if finding.remedy.startswith(COMMAND):
        # In one line of any length, so that the user can copy it.
        yield f"{_INDENT}-> {finding.remedy}"
    elif finding.remedy:
        yield filled(f"{_INDENT}-> {finding.remedy}", indent=f"{_INDENT}   ")


def _sum(findings: Sequence[Finding]) -> str:
    levels = [each.level for each in findings]
    problems, warnings = levels.count("problem"), levels.count("warning")
    if not problems:
        return f"No problem found, {counted(warnings, 'warning')}." if warnings else "No problem found."
    return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}."
