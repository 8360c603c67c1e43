"""The holders of personal data: each plugin with the hook `subject_data`, then the host. All are asked."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from beaver_hooks.agent.sessions.database import DATABASE, SessionDatabase, refuse_listed, storage_error
from beaver_hooks.agent.sessions.transactions import Work
from beaver_hooks.agent.sessions.transfer import session_lines
from beaver_hooks.backups.configured_plugins import Answers, Places, Question, unasked_folders
from beaver_hooks.config import LoadedConfig
from beaver_hooks.config.paths import printable
from beaver_hooks.file_trust import StateFiles
from beaver_hostspecs import BeaverError, Subject, SubjectData, SubjectReport
from beaver_hostspecs.naming import type_name
from beaver_toolkit.sqlite.errors import DatabaseError, translated

HOST = "host"

_WITHOUT = "has no hook `subject_data`; ask its author how to reach its data"
_UNKNOWN = "is not installed"

Ask = Callable[[SubjectData, Path], object]
"""Calls one of the functions of a holder, with the folder for its files."""

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
class HolderReport:
    """What one holder has answered.

    Attributes:
        name: of the plugin, or `host`.
        report: its report; `None` if it failed.
        failure: why it failed; empty if it did not.
    """

    name: str
    report: SubjectReport | None = None
    failure: str = ""


@attrs.frozen(kw_only=True)
class Summary:
    """What all holders have answered, in the order in which they were asked.

    Attributes:
        answers: of the holders.
        unasked: the plugins that are on or have files, and could not be asked.
        unreached: sentences about these, and about plugins that are off.
    """

    answers: tuple[HolderReport, ...]
    unasked: tuple[str, ...]
    unreached: tuple[str, ...]

    @property
    def reports(self) -> Mapping[str, SubjectReport]:
        """The reports by the names of their holders."""
        return {each.name: each.report for each in self.answers if each.report is not None}

    @property
    def failures(self) -> Mapping[str, str]:
        """Why holders failed, by their names."""
        return {each.name: each.failure for each in self.answers if each.report is None}

    @property
    def count(self) -> int:
        """How many things were found, exported or erased."""
        return sum(sum(each.places.values()) for each in self.reports.values())

    @property
    def is_whole(self) -> bool:
        """Whether each plugin has answered, and nothing is left."""
        is_left = any(any(each.left.values()) for each in self.reports.values())
        return not (self.failures or self.unasked or is_left)


@attrs.frozen(kw_only=True)
class Holders:
    """The holders of personal data under a configuration.

    Attributes:
        data: their functions by their names, the host last.
        failed: why plugins could not be asked, by name.
        unasked: the plugins that are on or have files, and could not be asked.
        unreached: sentences about these, and about plugins that are off.
    """

    data: Mapping[str, SubjectData]
    failed: Mapping[str, str]
    unasked: tuple[str, ...]
    unreached: tuple[str, ...]

    @classmethod
    def under(cls, loaded: LoadedConfig, environment: Mapping[str, str]) -> "Holders":
        """Return the holders that a configuration describes.

        Raises:
            ConfigurationError: the settings of a plugin are wrong.
        """
        places = Places(state=loaded.state_folder, person=loaded.person_folder)
        found = Question(
            hook="subject_data", kind=SubjectData, config=loaded.config, places=places, environment=environment
        ).ask()
        host = HostData(folder=places.state, environment=environment)
        plugins = {each.name: each.answer for each in found.given if each.answer is not None}
        folders = tuple(unasked_folders(places, found))
        return cls(
            data={**plugins, HOST: host.functions()},
            failed=found.failed,
            unasked=tuple(dict.fromkeys((*found.without, *(name for name, _ in folders)))),
            unreached=tuple(_unreached(found, folders)),
        )

    def count(self, subject: Subject) -> Summary:
        """Ask each holder what it keeps of a person."""
        return self._asked(lambda data, _: data.count(subject))

    def export(self, subject: Subject, folder: Path) -> Summary:
        """Let each holder write the data of a person into a folder of its own."""
        return self._asked(lambda data, own: data.export(subject, own), folder)

    def erase(self, subject: Subject) -> Summary:
        """Let each holder erase the data of a person. One that fails keeps no other one from it."""
        return self._asked(lambda data, _: data.erase(subject))

    def _asked(self, ask: Ask, folder: Path | None = None) -> Summary:
        failed = (HolderReport(name=name, failure=why) for name, why in self.failed.items())
        answers = (*failed, *self._answers(ask, folder))
        return Summary(answers=answers, unasked=self.unasked, unreached=self.unreached)

    def _answers(self, ask: Ask, folder: Path | None) -> Iterator[HolderReport]:
        for name, data in self.data.items():
            own = (folder or Path(os.devnull)) / name
            if folder is not None:
                own.mkdir(mode=0o700)
            yield _answer(name, lambda data=data, own=own: ask(data, own))  # type: ignore[misc]


def _unreached(found: Answers[SubjectData], folders: Iterable[tuple[str, Path]]) -> Iterator[str]:
    """Yield a sentence for each folder that no plugin reaches, and for each other plugin that was not asked."""
    for name, folder in folders:
        why = f"is off ({found.off[name]})" if name in found.off else _WITHOUT if name in found.without else _UNKNOWN
        yield f"The files in {printable(str(folder))} were not reached: the plugin {name} {why}."
    named = {name for name, _ in folders}
    for name in found.without:
        if name not in named:
            yield f"Data of the plugin {name}, wherever it keeps any, was not reached: it {_WITHOUT}."
    for name in found.off:
        if name not in named:
            yield f"The plugin {name} is off and has no files here; data that it keeps elsewhere was not reached."


def _answer(name: str, ask: Callable[[], object]) -> HolderReport:
    """Return the answer of a holder, or why it has none."""
    try:
        report = ask()
    except BeaverError as error:
        return HolderReport(name=name, failure=str(error))
    except OSError as error:
        return HolderReport(name=name, failure=f"A file cannot be read or written ({error.strerror}).")
    except Exception as error:  # noqa: BLE001 - the report names the plugin
        return HolderReport(name=name, failure=f"It raised {type_name(error)}; report this.")
    if type(report) is not SubjectReport:
        return HolderReport(name=name, failure=f"It returned a {type_name(report)}; report this.")
    return HolderReport(name=name, report=report)


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
