"""Lists the state files in git's index: a pull can change them, and each clone of the repository holds them."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from beaver_hooks.agent.sessions.database import FILES as SESSIONS
from beaver_hooks.audit.key import KEY_FILE
from beaver_hooks.cli.checks.findings import Finding, from_error, ok, problem
from beaver_hooks.cli.terminal import counted
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.file_trust.state_files import DATABASES
from beaver_hooks.turns.switch import FILE as SWITCH
from beaver_hostspecs import ConfigurationError

SUBJECT = "files in git's index"

_WHY = {
    KEY_FILE: "every user of the repository can forge the audit trail",
    SWITCH: "a pull can switch memory on or off",
}


def examine(folder: Path, further: Iterable[Path], environment: Mapping[str, str]) -> list[Finding]:
    """Return the files of a state folder that git must not list, and those that wait for a confirmation.

    Args:
        folder: the state folder.
        further: folders outside of it in which plugins keep files.
        environment: the variables that locate git and the record of confirmations.
    """
    files = StateFiles(folder, environment)
    listed = files.listed()
    found = [_wrong(path) for path in sorted({*filter(_is_wrong, listed), *_conversations(folder, files)})]
    try:
        unbelieved = files.unbelieved(folder, *further)
    except ConfigurationError as error:
        return [*found, from_error(SUBJECT, error, "move the record away, and confirm the files again")]
    if unbelieved:
        text = f"{counted(len(unbelieved), 'file')} may have come with a repository and must be confirmed"
        found.append(problem(SUBJECT, text, "run: beaver trust --files"))
    return found or [
        ok(SUBJECT, f"{counted(len(listed), 'file')}, unchanged since you confirmed them" if listed else "none")
    ]


def _is_wrong(path: Path) -> bool:
    return path.name in _WHY or path.name.endswith(DATABASES)


def _conversations(folder: Path, files: StateFiles) -> list[Path]:
    """Return the listed files of the conversations, including missing ones, which are refused too."""
    real = Path(os.path.realpath(folder))
    return [real / name for name in SESSIONS if files.is_listed(real / name)]


def _wrong(path: Path) -> Finding:
    text = f"it lists {printable(str(path))}: {_WHY.get(path.name, 'a pull can replace it')}"
    return problem(SUBJECT, text, f"run: git rm --cached {shlex.quote(printable(str(path)))}")
