"""The state of the host: conversations, the memory switch, and the audit trail with receipts, health and its key.

The trail is copied last. So it accounts for everything else in the backup, and may tell of things after it.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from beaver_hooks.agent.sessions import reads, sums
from beaver_hooks.agent.sessions.database import DATABASE as SESSIONS
from beaver_hooks.agent.sessions.database import PACKAGE as SESSIONS_PACKAGE
from beaver_hooks.agent.sessions.database import SessionDatabase, refuse_listed, storage_error
from beaver_hooks.agent.sessions.records import ImportReport, Session
from beaver_hooks.agent.sessions.texts import stored_text
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.agent.sessions.transfer import read_lines, session_lines
from beaver_hooks.audit.database import DATABASE as TRAIL
from beaver_hooks.audit.database import PACKAGE as TRAIL_PACKAGE
from beaver_hooks.audit.database import Database as TrailDatabase
from beaver_hooks.audit.key import KEY_FILE, read_key
from beaver_hooks.audit.reader import TrailReader, unavailable
from beaver_hooks.backups.errors import BackupError, full_disk
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hooks.state_folder import make_state_folder
from beaver_hooks.turns.switch import FILE as SWITCH
from beaver_hostspecs import (
    PROJECT_PART,
    AuditUnavailable,
    BackupReport,
    Message,
    RestoreReport,
    RestoreRequest,
    StateBackup,
)
from beaver_toolkit.files import create_once, open_regular
from beaver_toolkit.sqlite.copies import check_free, copy_moment, put_in_place
from beaver_toolkit.sqlite.database import Database
from beaver_toolkit.sqlite.errors import DatabaseError, translated
from beaver_toolkit.sqlite.losses import losses_of
from beaver_toolkit.sqlite.migrations import read_migrations

MOST_NAMED = 20
"""Conflicts that are named; the others are counted."""


@attrs.frozen(kw_only=True)
class HostState:
    """The state of the host in a folder.

    Attributes:
        folder: the state folder.
        environment: the variables that locate git.
        store_secrets: whether conversations that a merge adds keep the secrets that rules recognise.
    """

    folder: Path
    environment: Mapping[str, str]
    store_secrets: bool = False

    def functions(self) -> StateBackup:
        """Return the functions that copy this state, and bring it back."""
        return StateBackup(write=self.write, check=self.check, restore=self.restore)

    def write(self, folder: Path) -> tuple[str, ...]:
        """Copy the files into the folder `project`; return what the databases have lost before.

        Raises:
            StorageError: the conversations cannot be copied.
            AuditUnavailable: the trail cannot be copied.
        """
        here, to = self.folder, folder / PROJECT_PART
        to.mkdir(mode=0o700, parents=True)
        if os.path.lexists(here / SESSIONS):
            refuse_listed(here, StateFiles(here, self.environment))
            with _sessions_explained(here):
                _copy(here / SESSIONS, to / SESSIONS, SESSIONS_PACKAGE)
        _copy_file(here / SWITCH, to / SWITCH)
        # It never changes, and a key without a trail is worth keeping: the switch is written with it.
        _copy_file(here / KEY_FILE, to / KEY_FILE)
        if os.path.lexists(here / TRAIL):
            with _trail_explained(here):
                _copy(here / TRAIL, to / TRAIL, TRAIL_PACKAGE)
        return tuple(f"{here / name}: {loss}" for name in (SESSIONS, TRAIL) for loss in losses_of(here / name))

    def check(self, folder: Path) -> BackupReport:
        """Examine the copies: pages of both databases, the chain of the trail."""
        copy, held, problems = folder / PROJECT_PART, dict[str, int](), list[str]()
        if (copy / SESSIONS).is_file():
            with _sessions_explained(copy):
                counts, faults = _examined_sessions(copy)
            held |= counts
            problems += [f"{SESSIONS} is damaged: {each}" for each in faults]
        if (copy / TRAIL).is_file():
            counts, faults = _examined_trail(copy)
            held |= counts
            problems += faults
        return BackupReport(held=held, problems=problems)

    def restore(self, request: RestoreRequest) -> RestoreReport:
        """Bring the copies back; a merge adds conversations, and leaves a trail that is there as it is.

        Raises:
            StorageError: the conversations cannot be restored.
            AuditUnavailable: the trail cannot be restored.
            BackupError: without `merge`, one of the files is there.
        """
        copy = request.folder / PROJECT_PART
        if not copy.is_dir():
            return RestoreReport()
        if not request.dry_run:
            make_state_folder(self.folder)
        sessions = self._sessions(copy, request)
        trail = self._trail(copy, request)
        return attrs.evolve(
            sessions, added={**sessions.added, **trail.added}, notes=(*sessions.notes, *trail.notes)
        )  # fmt: skip

    # --- Conversations ------------------------------------------------------------------------------------------

    def _sessions(self, copy: Path, request: RestoreRequest) -> RestoreReport:
        if not (copy / SESSIONS).is_file():
            return RestoreReport()
        with _sessions_explained(self.folder):
            if request.merge and os.path.lexists(self.folder / SESSIONS):
                refuse_listed(self.folder, StateFiles(self.folder, self.environment))
                return _merged(copy, self.folder, dry=request.dry_run, store_secrets=self.store_secrets)
            _place(copy / SESSIONS, self.folder / SESSIONS, dry=request.dry_run)
            counts, _ = _examined_sessions(copy)
        return RestoreReport(added=counts)

    # --- The trail, its key, and the switch ---------------------------------------------------------------------

    def _trail(self, copy: Path, request: RestoreRequest) -> RestoreReport:
        names = [name for name in (SWITCH, KEY_FILE, TRAIL) if (copy / name).is_file()]
        there = [name for name in (SWITCH, KEY_FILE, TRAIL) if os.path.lexists(self.folder / name)]
        if there and names and request.merge:
            return RestoreReport(notes=(_left(self.folder),))
        if there and names:
            raise BackupError(_taken(self.folder / there[0]))
        for name in names:
            if name == TRAIL:
                with _trail_explained(self.folder):
                    _place(copy / name, self.folder / name, dry=request.dry_run)
            elif not request.dry_run:
                _put_file(copy / name, self.folder / name)
        counts = _examined_trail(copy)[0] if TRAIL in names else {}
        return RestoreReport(added=counts)


def _left(folder: Path) -> str:
    return (
        f"The audit trail, receipts, health and memory switch in {printable(str(folder))} stay as they are; those of"
        " the backup cannot be added to them."
    )


def _taken(path: Path) -> str:
    return f"{printable(str(path))} is there already; move it away, or restore with --merge."


@contextlib.contextmanager
def _sessions_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        if error.category == "exists":
            raise BackupError(_taken(folder / SESSIONS)) from error
        raise storage_error(folder, error.category) from error


@contextlib.contextmanager
def _trail_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        if error.category == "exists":
            raise BackupError(_taken(folder / TRAIL)) from error
        raise unavailable(folder, error.category) from error


def _copy(path: Path, copy: Path, package: str) -> None:
    with contextlib.closing(Database.read(path, read_migrations(package))) as database:
        copy_moment(database.connection, copy)


def _copy_file(path: Path, copy: Path) -> None:
    """Copy a small file, if it exists; a link is refused, as the host refuses it."""
    if not os.path.lexists(path):
        return
    try:
        with open_regular(path, follow_links=False) as file:
            content = file.read()
    except OSError as error:
        raise BackupError(f"{printable(str(path))} cannot be read ({error.strerror}); make it readable.") from error
    try:
        create_once(copy, content)
    except OSError as error:
        raise full_disk(error, copy) from error


def _put_file(copy: Path, path: Path) -> None:
    try:
        made = create_once(path, copy.read_bytes())
    except OSError as error:
        raise full_disk(error, path) from error
    if not made:
        raise BackupError(_taken(path))


def _place(copy: Path, path: Path, *, dry: bool) -> None:
    if dry:
        check_free(path)
    else:
        put_in_place(copy, path)


def _examined_sessions(folder: Path) -> tuple[dict[str, int], list[str]]:
    with (
        translated(),
        contextlib.closing(Database.read(folder / SESSIONS, read_migrations(SESSIONS_PACKAGE))) as database,
    ):
        if faults := sums.faults(database.connection):
            return {}, faults
        return reads.totals(database.connection), []


def _examined_trail(folder: Path) -> tuple[dict[str, int], list[str]]:
    reader = TrailReader(folder)
    try:
        if faults := reader.faults():
            return {}, [f"{TRAIL} is damaged: {each}" for each in faults]
        if read_key(folder) is None:
            return {}, [f"the key {KEY_FILE} of the audit trail is missing, so its records cannot be verified"]
        verdict = reader.verify()
    except AuditUnavailable as error:
        return {}, [str(error)]
    with _trail_explained(folder), contextlib.closing(TrailDatabase.read(folder)) as database:
        receipts = len(database.receipts(-1))
    held = {"audit records": verdict.checked, "receipts": receipts}
    if verdict.ok:
        return held, []
    return held, [f"record {verdict.first_bad} of the audit trail is wrong ({verdict.reason})"]


# --- Merging conversations ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _open(folder: Path, *, store_secrets: bool = False) -> Iterator[Work]:
    database = SessionDatabase(folder)
    try:
        with translated():
            yield Work(database, store_secrets=store_secrets)
    finally:
        database.close()


def _merged(copy: Path, folder: Path, *, dry: bool, store_secrets: bool) -> RestoreReport:
    """Add the conversations that are missing, and the end of those that are shorter than in the copy."""
    total, present, conflicts = ImportReport(), 0, list[str]()
    with _open(copy) as source, _open(folder, store_secrets=store_secrets) as target:
        for session in source.session_ids():
            ours = source.show(session, hidden=True)
            theirs = target.show_if_any(session=session, needed=False)
            if theirs is not None and _begins(theirs, ours):
                present += 1
            elif theirs is not None and not _begins(ours, theirs):
                conflicts.append(f"The session {printable(session)} was changed since, and stays as it is.")
            elif dry:
                total = attrs.evolve(total, added=total.added + 1, messages=total.messages + len(ours.messages))
            else:
                (incoming,) = read_lines(session_lines(ours))
                total = target.take_in(incoming=incoming, replace=True, total=total)
    more = [f"{len(conflicts) - MOST_NAMED:,} more sessions differ."] if conflicts[MOST_NAMED:] else []
    return RestoreReport(
        added={"sessions": total.added + total.replaced, "messages": total.messages},
        present={"sessions": present},
        conflicts=[*conflicts[:MOST_NAMED], *more],
    )


def _begins(longer: Session, shorter: Session) -> bool:
    """Return whether a session begins with the messages of another one, but for secrets that only one of them keeps."""
    if len(longer.messages) < len(shorter.messages):
        return False
    pairs = zip(longer.messages, shorter.messages, strict=False)
    return all(one == other or _masked(one) == _masked(other) for one, other in pairs)


def _masked(message: Message) -> Message:
    return attrs.evolve(message, text=stored_text(message.text))
