"""The host's own data of a person: its conversations. Receipts, health and the audit trail hold no content."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from beaver_hooks.agent.sessions.database import DATABASE, SessionDatabase, refuse_listed, storage_error
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.agent.sessions.transfer import session_lines
from beaver_hooks.file_trust import StateFiles
from beaver_hostspecs import Subject, SubjectData, SubjectReport
from beaver_toolkit.sqlite.errors import DatabaseError, translated

FILE = "conversations.jsonl"

TRAIL = (
    "Receipts, health, the memory switch and the audit trail hold counts, ids and keyed hashes, and no content; they"
    " stay: without its records the trail could not be verified."
)
NO_TENANTS = "Conversations are kept without a tenant, so none was touched; leave out --tenant to reach them."
UNNAMED = "Conversations without a user, and those of other users, may mention this person; they stay."
RUNNING = (
    "An agent that runs meanwhile may store the turn that it is in, and a framework or a coding agent keeps histories"
    " of its own; erase again when it has ended, and delete those histories there."
)
COPIES = "Earlier backups, exports and logs are not reached; delete those that were made before."


@attrs.frozen(kw_only=True)
class HostData:
    """The conversations in a state folder.

    Attributes:
        folder: the state folder.
        environment: the variables that locate git.
    """

    folder: Path
    environment: Mapping[str, str]

    def functions(self) -> SubjectData:
        """Return the functions of this data."""
        return SubjectData(count=self.count, export=self.export, erase=self.erase)

    def count(self, subject: Subject) -> SubjectReport:
        """Count the conversations of a person.

        Raises:
            StorageError: they cannot be read.
        """
        with self._conversations(subject) as work:
            return self._report(subject, {} if work is None else work.holdings(subject.user))

    def export(self, subject: Subject, folder: Path) -> SubjectReport:
        """Write the conversations of a person, with hidden events, as `beaver sessions export` does.

        Raises:
            StorageError: they cannot be read.
            OSError: the file cannot be written.
        """
        with self._conversations(subject) as work:
            if work is None:
                return self._report(subject, {})
            with (folder / FILE).open("w", encoding="ascii") as file:
                for session in work.session_ids(subject.user):
                    file.writelines(f"{line}\n" for line in session_lines(work.show(session, hidden=True)))
            return self._report(subject, work.holdings(subject.user))

    def erase(self, subject: Subject) -> SubjectReport:
        """Erase the conversations of a person, without traces in the files.

        Raises:
            StorageError: they cannot be erased.
        """
        with self._conversations(subject) as work:
            if work is None:
                return self._report(subject, {})
            before = work.holdings(subject.user)
            work.delete_those_of(subject.user)
            left = {place: count for place, count in work.holdings(subject.user).items() if count}
            return attrs.evolve(self._report(subject, before), left=left)

    @contextlib.contextmanager
    def _conversations(self, subject: Subject) -> Iterator[Work | None]:
        """Lend the database; `None` if there is none, or if a tenant is meant, which it does not know."""
        if subject.tenant is not None or not os.path.lexists(self.folder / DATABASE):
            yield None
            return
        refuse_listed(self.folder, StateFiles(self.folder, self.environment))
        database = SessionDatabase(self.folder)
        try:
            with translated():
                yield Work(database)
        except DatabaseError as error:
            raise storage_error(self.folder, error.category) from error
        finally:
            database.close()

    def _report(self, subject: Subject, held: Mapping[str, int]) -> SubjectReport:
        unreached = UNNAMED if subject.tenant is None else NO_TENANTS
        return SubjectReport(
            places={place: count for place, count in held.items() if count},
            unreached=(unreached, TRAIL, RUNNING, COPIES),
        )
