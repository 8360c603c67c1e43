"""The status of the hooks: in each settings file, and in the resident process."""

import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from beaver_hooks.coding_agents.claude_code import client
from beaver_hooks.coding_agents.claude_code.folder_trust import check_folder, merely_found
from beaver_hooks.coding_agents.claude_code.installer import Installation, Scope, named_file, settings_file
from beaver_hooks.coding_agents.claude_code.settings import EVENTS, Entries, look
from beaver_hooks.config import load_config
from beaver_hooks.config.paths import printable
from beaver_hostspecs import AuditUnavailable, ConfigurationError

State = Literal["installed", "partly", "absent", "unreadable"]

SCOPES: tuple[Scope, ...] = ("user", "project", "local")
PATIENCE = 2.0
"""Seconds that a resident has to report its status."""


@attrs.frozen(kw_only=True)
class HookStatus:
    """The status of the hooks in one settings file.

    Attributes:
        state: `installed`, or `partly` if an entry is missing or doubled.
        problems: faults that keep the hooks from working, each a sentence.
        notes: other remarks for the user, each a sentence.
        options: the resident's options, as the entries have them.
        switched_off: whether the file makes Claude Code run no hooks of any file.
    """

    scope: Scope
    path: Path
    state: State
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    switched_off: bool = False

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


def examine(scope: Scope, environment: Mapping[str, str], cwd: Path) -> HookStatus:
    """Return the status of the hooks in the settings file of a scope."""
    path = named_file(scope, environment, cwd)
    try:
        path = settings_file(scope, environment, cwd)
        installation = Installation(path, environment)
        entries = look(installation.read() or b"")
        edited = not installation.as_left()
    except ConfigurationError as error:
        return HookStatus(scope=scope, path=path, state="unreadable", problems=(error.problem,))
    if not entries.commands:
        return HookStatus(scope=scope, path=path, state="absent", switched_off=entries.switched_off)
    return HookStatus(
        scope=scope,
        path=path,
        state="installed" if entries.complete else "partly",
        problems=tuple(_problems(entries)),
        notes=tuple(_notes(entries, edited=edited)),
        options=_options(entries),
        switched_off=entries.switched_off,
    )


def configuration_fault(options: Sequence[str], environment: Mapping[str, str], cwd: Path) -> str | None:
    """Return why the configuration or the state folder that a resident would use cannot be used, or `None`."""
    named = next((each.removeprefix(client.CONFIG) for each in options if each.startswith(client.CONFIG)), None)
    try:
        loaded = load_config(None if named is None else Path(named), environment=environment, cwd=cwd)
        if merely_found(loaded, environment, named=named is not None):
            check_folder(loaded.state_folder, environment)
    except (ConfigurationError, AuditUnavailable) as error:
        return str(error).rstrip(".")
    return None


def place_fault(options: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return why no resident can be reached, or `None`."""
    folder = Path(client.socket_path(options, environment)).parent
    try:
        client.check_private(str(folder))
    except FileNotFoundError:
        return None
    except OSError:
        return (
            f"{printable(str(folder))} can be used by other users too, so no resident process is asked; remove the"
            " folder"
        )
    return None


def resident(options: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the status that the resident for the working directory reports, or `None` if none runs.

    Raises:
        TimeoutError: a resident runs and does not answer.
    """
    request = json.dumps({"hook_event_name": client.STATUS}).encode()
    try:
        answer = client.ask(client.socket_path(options, environment), request, PATIENCE)
        return dict(json.loads(answer)) if answer else None
    except TimeoutError:
        raise
    except (OSError, ValueError, TypeError):
        return None


def silence(options: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return advice about a resident that runs and does not answer."""
    lock = Path(client.socket_path(options, environment)).with_suffix(".lock")
    then = "and the next session starts another"
    with contextlib.suppress(OSError, ValueError):
        pid = int(lock.read_bytes())
        return f"the resident process {pid} does not answer; end it by `kill -9 {pid}`, {then}"
    return f"the resident process does not answer; end it, {then}"


def others(options: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the other programs that ran these hooks in the working directory and got no memory."""
    path = Path(client.others_path(client.socket_path(options, environment)))
    try:
        return sorted(set(path.read_text(encoding="utf-8", errors="replace").splitlines()))
    except OSError:
        return []


def log_file(options: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Return the log file of the resident for the working directory."""
    return Path(client.socket_path(options, environment)).with_suffix(".log")


def _problems(entries: Entries) -> list[str]:
    again = "`beaver hooks install claude-code` fixes it"
    problems = [f"the event {name} has no hook; {again}" for name in entries.missing]
    doubled = [name for name, found in entries.commands.items() if len(found) > 1]
    problems += [f"the event {name} has more than one hook; {again}" for name in doubled]
    problems += [
        f"the event {name} has a hook that this version does not use; {again}"
        for name in entries.commands
        if name not in EVENTS
    ]
    gone = sorted(each for each in entries.programs if not os.access(each, os.R_OK))
    problems += [f"{printable(each)} does not exist any more; {again}" for each in gone]
    return problems


def _notes(entries: Entries, *, edited: bool) -> list[str]:
    notes = []
    if entries.programs != {sys.executable, client.__file__}:
        notes.append("it runs another installation of Beaver Hooks than this one")
    if edited:
        notes.append("the file was changed after the installation; uninstalling removes the hooks and leaves the rest")
    return notes


def _options(entries: Entries) -> tuple[str, ...]:
    """Return the options of the resident from our commands; none if they cannot be parsed."""
    try:
        return tuple(client.split(entries.options)[2])
    except ValueError:
        return ()
