"""Installs the hooks in a settings file of Claude Code, and takes them out again.

A backup of the file is kept in the user's state folder, beside the record of confirmed configurations: never in a
project. If the file is unchanged since the installation, uninstalling restores the same bytes; otherwise it removes
only the entries of Beaver Hooks.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import attrs

from beaver_hooks.coding_agents.claude_code import client
from beaver_hooks.coding_agents.claude_code.settings import EVENTS, command, is_empty, put_in, take_out
from beaver_hooks.config.paths import printable
from beaver_hooks.config.trust import record_path
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import open_regular, replace
from beaver_toolkit.locks import LocksMissing, locked

T = TypeVar("T")

Scope = Literal["user", "project", "local"]


def named_file(scope: Scope, environment: Mapping[str, str], cwd: Path) -> Path:
    """Return the settings file of a scope, with links unresolved."""
    if scope == "user":
        base = environment.get("CLAUDE_CONFIG_DIR")
        home = Path(environment.get("HOME") or Path.home())
        return cwd / (Path(base) if base else home / ".claude") / "settings.json"
    return cwd / ".claude" / ("settings.json" if scope == "project" else "settings.local.json")


def settings_file(scope: Scope, environment: Mapping[str, str], cwd: Path) -> Path:
    """Return the settings file of a scope; the target of a link, so that the link stays.

    Raises:
        ConfigurationError: a link leads out of the project. A repository can contain a link to any file.
    """
    named = named_file(scope, environment, cwd)
    real = Path(os.path.realpath(named))
    if scope != "user" and not real.is_relative_to(os.path.realpath(cwd)):
        raise ConfigurationError(
            "", f"{printable(str(named))} is a link to a place outside the project; remove the link"
        )
    return real


def commands(options: Sequence[str]) -> dict[str, str]:
    """Return the command of each event for this interpreter and this installation."""
    return {name: command(sys.executable, client.__file__, each, options) for name, each in EVENTS.items()}


@attrs.frozen(kw_only=True)
class Change:
    """A file before and after; `None` is a missing file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""
        return self.before != self.after


@attrs.frozen(kw_only=True)
class _Record:
    """The record of the last installation.

    Attributes:
        before: the file before the installation, or `None` if it was missing.
        after: the hash of the written file.
    """

    before: bytes | None
    after: str


class Installation:
    """The hooks in one settings file.

    Args:
        path: the file.
        environment: the variables that locate the user's state folder.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._folder = record_path(environment).parent / "claude-code"
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:20]
        self._record, self._backup = self._folder / f"{name}.json", self._folder / f"{name}.before"

    def read(self) -> bytes | None:
        """Return the settings file, or `None`.

        Raises:
            ConfigurationError: it cannot be read.
        """
        return _file(lambda: _read(self._path), self._path)

    def install(self, wanted: Mapping[str, str], *, dry: bool = False) -> Change:
        """Put the commands in, one per event; change nothing if they are in already.

        Raises:
            ConfigurationError: the file is no settings file of Claude Code, or a file cannot be read or written.
        """
        with self._alone(dry=dry):
            current, record = self.read(), self._recorded()
            if put_in(current or b"", wanted) == current:
                return Change(path=self._path, before=current, after=current)
            base = take_out(current) if current is not None else None
            if record is not None and _is(current, record.after):
                base = record.before
            after = put_in(base or b"", wanted)
            if not dry:
                _file(lambda: self._keep(base, after), self._folder)
                _file(lambda: _write(self._path, after), self._path)
            return Change(path=self._path, before=current, after=after)

    def uninstall(self, *, dry: bool = False) -> Change:
        """Take the commands out; remove a file that the installation made, if it has no other content.

        Raises:
            ConfigurationError: as for `install`.
        """
        with self._alone(dry=dry):
            current, record = self.read(), self._recorded()
            after = self._without(current, record) if current is not None else None
            if not dry:
                _file(lambda: _write(self._path, after) if after != current else None, self._path)
                _file(self._forget, self._folder)
            return Change(path=self._path, before=current, after=after)

    def as_left(self) -> bool:
        """Whether the file is as the last installation left it."""
        record = self._recorded()
        return record is not None and _is(self.read(), record.after)

    @staticmethod
    def _without(current: bytes, record: _Record | None) -> bytes | None:
        if record is not None and _is(current, record.after):
            return record.before
        after = take_out(current)
        ours_alone = record is not None and record.before is None and after != current and is_empty(after)
        return None if ours_alone else after

    @contextlib.contextmanager
    def _alone(self, *, dry: bool) -> Iterator[None]:
        """Hold the lock, except in a dry run."""
        with contextlib.ExitStack() as stack:
            if not dry:
                _file(lambda: self._folder.mkdir(mode=0o700, parents=True, exist_ok=True), self._folder)
                _file(lambda: stack.enter_context(locked(self._folder / "lock")), self._folder)
            yield

    def _keep(self, before: bytes | None, after: bytes) -> None:
        """Back up the file before the change."""
        if before is not None:
            replace(self._backup, before)
        digest = None if before is None else _digest(before)
        record = {"version": 1, "settings": str(self._path), "before": digest, "after": _digest(after)}
        replace(self._record, json.dumps(record, indent=2).encode())

    def _recorded(self) -> _Record | None:
        """Return the record of the installation, or `None` if it is missing or unusable."""
        try:
            found = json.loads(self._record.read_bytes())
            before = None if found["before"] is None else self._backup.read_bytes()
            usable = found["version"] == 1 and (before is None or _digest(before) == found["before"])
            return _Record(before=before, after=str(found["after"])) if usable else None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None  # without a record, uninstalling removes only our entries, which it recognises by themselves

    def _forget(self) -> None:
        self._record.unlink(missing_ok=True)
        self._backup.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        with open_regular(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(path: Path, content: bytes | None) -> None:
    """Replace a file and keep its mode, or remove it."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    replace(path, content)
    path.chmod(mode)


def _is(content: bytes | None, digest: str) -> bool:
    return content is not None and _digest(content) == digest


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _file(do: Callable[[], T], path: Path) -> T:
    """Return the result of `do`; turn an error of the system into one that names the path."""
    try:
        return do()
    except LocksMissing:
        problem = "locked on this system"
    except OSError as error:
        problem = f"used ({error.strerror}); check its permissions"
    raise ConfigurationError("", f"{printable(str(path))} cannot be {problem}")
