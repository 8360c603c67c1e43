"""Examination of databases: those of a state folder, the chain of the audit trail, missing commits."""

import contextlib
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from beaver_hooks.agent.errors import StorageError
from beaver_hooks.agent.sessions import sums
from beaver_hooks.agent.sessions.database import DATABASE as SESSIONS
from beaver_hooks.agent.sessions.database import PACKAGE, refuse_listed, storage_error
from beaver_hooks.audit.database import DATABASE as TRAIL
from beaver_hooks.audit.key import KEY_FILE
from beaver_hooks.audit.reader import TrailReader
from beaver_hooks.cli.checks.findings import Finding, from_error, ok, problem
from beaver_hooks.cli.state import is_there
from beaver_hooks.cli.terminal import counted
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hostspecs import AuditUnavailable
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError, translated
from beaver_toolkit.sqlite.losses import databases_with_losses, losses_of, remedy
from beaver_toolkit.sqlite.migrations import read_migrations

BACKUP = "move it away, with its -wal and -shm files, and restore a backup"


def sessions(folder: Path) -> Finding:
    """Return whether the conversations are sound."""
    path, subject = folder / SESSIONS, "sessions"
    if not is_there(path):
        return ok(subject, "no conversations are stored")
    return _unusable(subject, path) or _examined(subject, path, lambda: _sessions_integrity(folder))


def trail(folder: Path) -> Finding:
    """Return whether the database of the audit trail is sound."""
    path, subject = folder / TRAIL, "audit trail"
    if not is_there(path):
        return _no_trail(subject, folder)
    return _unusable(subject, path) or _examined(subject, path, TrailReader(folder).faults)


def chain(folder: Path) -> Finding:
    """Return whether the keyed hashes of the audit trail's records are correct."""
    subject = "audit chain"
    if _is_loose(folder / KEY_FILE):
        # `read_key` would tighten the file's mode, and an examination repairs nothing.
        text = f"not verified: other users may read {KEY_FILE}, so they could forge records"
        return problem(subject, text, f"run: chmod 600 {shlex.quote(printable(str(folder / KEY_FILE)))}")
    try:
        verdict = TrailReader(folder).verify()
    except AuditUnavailable as error:
        return from_error(subject, error, BACKUP)
    if verdict.ok and verdict.missing_triggers:
        text = f"{counted(verdict.checked, 'record')}, intact, but a program removed triggers that protect them"
        return problem(subject, text, "run: beaver audit verify; keep a copy of host.db, and restore a backup")
    if verdict.ok:
        return ok(subject, f"{counted(verdict.checked, 'record')}, intact")
    text = f"record {verdict.first_bad} is wrong ({verdict.reason}) after {counted(verdict.checked, 'good record')}"
    return problem(subject, text, "find out which program changed host.db; keep a copy of it, and restore a backup")


def _no_trail(subject: str, folder: Path) -> Finding:
    if not is_there(folder / KEY_FILE):
        return ok(subject, "nothing is recorded")
    text = f"its key {KEY_FILE} is there, and {TRAIL} is gone"
    return problem(subject, text, "restore it from a backup; otherwise the next start creates a new one")


def _unusable(subject: str, path: Path) -> Finding | None:
    """Return why a database must not be opened, or `None`. A pipe would block; a link may lead anywhere."""
    try:
        found = path.lstat()
    except OSError as error:
        return problem(subject, f"{path} cannot be examined ({error.strerror})", "check the permissions of its folder")
    if not stat.S_ISREG(found.st_mode):
        return problem(
            subject, f"{path} is not a regular file, so it was not opened", "replace it with the file itself"
        )
    if not found.st_size:
        return problem(
            subject, f"{path} is empty", "restore a backup; otherwise the next start writes a new database into it"
        )
    return None


def _examined(subject: str, path: Path, integrity: Callable[[], Iterable[str]]) -> Finding:
    try:
        faulty = list(integrity())
    except (AuditUnavailable, StorageError) as error:
        return from_error(subject, error, BACKUP)
    if faulty:
        return problem(subject, f"{path} is damaged: {'; '.join(faulty[:3])}", BACKUP)
    return ok(subject, f"{path} is sound")


def _sessions_integrity(folder: Path) -> list[str]:
    """Return the faults that SQLite finds in the sessions.

    Raises:
        StorageError: they cannot be read, or must not be: closing a database writes its log into it.
    """
    refuse_listed(folder, StateFiles(folder, os.environ))
    try:
        with translated(), contextlib.closing(Database.read(folder / SESSIONS, read_migrations(PACKAGE))) as database:
            return sums.faults(database.connection)
    except DatabaseError as error:
        raise storage_error(folder, error.category) from error


def _is_loose(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and bool(stat.S_IMODE(found.st_mode) & 0o077)


def losses(folders: Iterable[Path]) -> Iterator[Finding]:
    """Yield the losses of databases that the user has not accepted, in some folders and those of their plugins."""
    within = (each for folder in folders for each in (folder, *folder.glob("*"), *folder.glob("plugins/*")))
    for path in (path for folder in dict.fromkeys(within) for path in databases_with_losses(folder)):
        for loss in losses_of(path):
            yield problem(path.name, f"{printable(str(path))}: {loss}", remedy(path))
