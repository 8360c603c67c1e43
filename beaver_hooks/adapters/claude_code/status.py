"""How the hooks are: in each settings file, and in the resident process."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from beaver_hooks.adapters.claude_code import client
from beaver_hooks.adapters.claude_code.installing import Installation, Scope, settings_file
from beaver_hooks.adapters.claude_code.settings import CLIENT, EVENTS, Entries, look
from beaver_hooks.config import load_config
from beaver_hooks.config.paths import printable
from beaver_hostspecs import ConfigurationError

State = Literal["installed", "partly", "absent", "unreadable"]

SCOPES: tuple[Scope, ...] = ("user", "project", "local")
PATIENCE = 2.0
"""Seconds that a resident has to say how it is."""


@attrs.frozen(kw_only=True)
class Found:
    """How the hooks are in one settings file.

    Attributes:
        state: `installed`, or `partly` where something is missing or doubled.
        problems: what keeps them from working, each a sentence.
        notes: what is worth knowing, each a sentence.
        options: the resident's options, as the entries have them.
    """

    scope: Scope
    path: Path
    state: State
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "scope": self.scope,
            "path": str(self.path),
            "state": self.state,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "options": list(self.options),
        }


def examine(scope: Scope, environment: Mapping[str, str], cwd: Path) -> Found:
    """Return how the hooks are in the settings file of a scope."""
    path = settings_file(scope, environment, cwd)
    installation = Installation(path, environment)
    try:
        entries = look(installation.read() or b"")
        edited = not installation.as_left()
    except ConfigurationError as error:
        return Found(scope=scope, path=path, state="unreadable", problems=(error.problem,))
    if not entries.commands:
        return Found(scope=scope, path=path, state="absent")
    return Found(
        scope=scope,
        path=path,
        state="installed" if entries.complete else "partly",
        problems=tuple(_problems(entries)),
        notes=tuple(_notes(entries, edited=edited)),
        options=_options(entries),
    )


def configuration_fault(options: Sequence[str], environment: Mapping[str, str], cwd: Path) -> str | None:
    """Return why the configuration that a resident would use cannot be used, or `None`."""
    named = next((each.removeprefix(client.CONFIG) for each in options if each.startswith(client.CONFIG)), None)
    try:
        load_config(None if named is None else Path(named), environment=environment, cwd=cwd)
    except ConfigurationError as error:
        return str(error)
    return None


def resident(options: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the resident for the working directory says of itself, or `None` where there is none."""
    request = json.dumps({"hook_event_name": client.STATUS}).encode()
    try:
        answer = client.ask(client.socket_path(options, environment), request, PATIENCE)
        return dict(json.loads(answer)) if answer else None
    except (OSError, ValueError, TypeError):
        return None


def log_file(options: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return where the resident for the working directory writes its log."""
    return Path(client.socket_path(options, environment)).with_suffix(".log")


def _problems(entries: Entries) -> list[str]:
    again = "`beaver hooks install claude-code` puts it right"
    problems = [f"nothing is asked at {name}; {again}" for name in entries.missing]
    doubled = [name for name, found in entries.commands.items() if len(found) > 1]
    problems += [f"{name} is asked more than once; {again}" for name in doubled]
    problems += [f"{name} is no event of ours; {again}" for name in entries.commands if name not in EVENTS]
    gone = sorted(each for each in entries.programs if not os.access(each, os.R_OK))
    problems += [f"{printable(each)} is not there any more; {again}" for each in gone]
    if entries.switched_off:
        problems.append("`disableAllHooks` is true, so that Claude Code runs no hook; take it out")
    return problems


def _notes(entries: Entries, *, edited: bool) -> list[str]:
    notes = []
    if entries.programs != {sys.executable, client.__file__}:
        notes.append("it runs another installation of Beaver Hooks than this one")
    if edited:
        notes.append("the file was changed since; uninstalling takes out our entries and leaves the rest")
    return notes


def _options(entries: Entries) -> tuple[str, ...]:
    """Return the options of the resident, from any of our commands."""
    words = shlex.split(next(iter(entries.commands.values()))[0])
    at = next(index for index, each in enumerate(words) if each.endswith("/".join(CLIENT)))
    return tuple(client.split(words[at + 1 :])[2])
