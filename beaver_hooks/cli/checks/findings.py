"""What an examination comes to: findings, each `ok`, a `warning` or a `problem`, and how they are said."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import attrs
from attrs import field

from beaver_hooks.cli import colours
from beaver_hooks.cli.codes import FOUND
from beaver_hooks.cli.formatting import counted, filled
from beaver_hooks.cli.terminal import show
from beaver_hostspecs import scrub

Level = Literal["ok", "warning", "problem"]

COMMAND = "run: "
"""How a remedy begins that is a command and nothing else."""

_INDENT = " " * 9
"""As wide as a level and what separates it from the rest."""


def _scrubbed(text: str) -> str:
    return scrub(text)


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: what.
        level: whether it is as it should be.
        text: how it is. Holds no credential, and of a configuration no value.
        remedy: what to do about it; empty where nothing is to be done.
    """

    subject: str
    level: Level
    text: str = field(converter=_scrubbed)
    remedy: str = field(default="", converter=_scrubbed)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return attrs.asdict(self)


def ok(subject: str, text: str) -> Finding:
    """Return the finding that something is as it should be."""
    return Finding(subject=subject, level="ok", text=text)


def warning(subject: str, text: str, remedy: str) -> Finding:
    """Return the finding that something may be meant so."""
    return Finding(subject=subject, level="warning", text=text, remedy=remedy)


def problem(subject: str, text: str, remedy: str) -> Finding:
    """Return the finding that something is wrong."""
    return Finding(subject=subject, level="problem", text=text, remedy=remedy)


def from_error(subject: str, error: Exception, remedy: str) -> Finding:
    """Return an error of ours as a finding; `remedy` is for one that names none after a semicolon."""
    text, found, own = str(error).rpartition("; ")
    return problem(subject, text, own) if found else problem(subject, own, remedy)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 where there is a problem, else 0. A warning is none."""
    return FOUND if any(each.level == "problem" for each in findings) else 0


def report(findings: Sequence[Finding], *, as_json: bool) -> None:
    """Print findings: as one JSON object, or in lines with what they come to at the end."""
    if as_json:
        found = [each.to_json() for each in findings]
        show(json.dumps({"ok": not exit_code(findings), "findings": found}))
        return
    for each in findings:
        show("\n".join(_lines(each)), paint=colours.level)
    show(f"\n{_sum(findings)}")


def _lines(finding: Finding) -> Iterable[str]:
    yield filled(f"{finding.level:<9}{finding.subject}: {finding.text}", indent=_INDENT)
    if finding.remedy.startswith(COMMAND):
        # In one line, however long, so that it can be copied.
        yield f"{_INDENT}-> {finding.remedy}"
    elif finding.remedy:
        yield filled(f"{_INDENT}-> {finding.remedy}", indent=f"{_INDENT}   ")


def _sum(findings: Sequence[Finding]) -> str:
    levels = [each.level for each in findings]
    problems, warnings = levels.count("problem"), levels.count("warning")
    if not problems:
        return f"No problem found, {counted(warnings, 'warning')}." if warnings else "No problem found."
    return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}."
