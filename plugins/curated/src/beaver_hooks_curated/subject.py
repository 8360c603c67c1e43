"""Exports and erases the USER.md of one user, where profiles are kept per user, with its history and its archive."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from beaver_hooks_curated.approvals import Queue
from beaver_hooks_curated.backup import PATIENCE, content_of, own_files, write_new
from beaver_hooks_curated.entries import BOTH
from beaver_hooks_curated.errors import MemoryUnwritable
from beaver_hooks_curated.folders import locked
from beaver_hooks_curated.layout import USERS, Layout, user_folder
from beaver_hooks_curated.settings import CuratedSettings
from beaver_hooks_curated.store import BELIEVE_ALL
from beaver_hostspecs import PERSON_PART, PROJECT_PART, Subject, SubjectData, SubjectReport

NOTES = (
    "MEMORY.md is the project's and may mention this person; `beaver memory curated show` shows it, and `beaver memory"
    " curated edit` changes it."
)
ONE_PROFILE = (
    "USER.md is one file for all users, because `memory.curated.perUser` is off, so it is not the data of one person;"
    " `beaver memory curated edit user` changes it."
)
OTHER_PROJECTS = (
    "A USER.md of this user in the folders of other projects was not reached; run the command in each of them."
)
NO_TENANTS = "USER.md is kept per user id whatever the tenant, so it was not touched; leave out --tenant to reach it."


class CuratedSubject:
    """The profiles of users in a layout.

    Args:
        layout: the memories.
        settings: of the plugin.
    """

    def __init__(self, layout: Layout, settings: CuratedSettings) -> None:
        self._layout, self._settings = layout, settings

    def functions(self) -> SubjectData:
        """Return the functions of these profiles."""
        return SubjectData(count=self.count, export=self.export, erase=self.erase)

    def count(self, subject: Subject) -> SubjectReport:
        """Count the entries, changes, waiting writes and files of a user."""
        found: Counter[str] = Counter()
        for folder in self._folders(subject).values():
            found += self._held(folder)
        return self._report(subject, found)

    def export(self, subject: Subject, folder: Path) -> SubjectReport:
        """Copy the files of a user, each folder under its lock.

        Raises:
            CuratedError: a folder is being written, or a file cannot be read or copied.
        """
        found: Counter[str] = Counter()
        for part, source in self._folders(subject).items():
            with locked(source, PATIENCE):
                found += self._held(source)
                for path in own_files(source):
                    write_new(folder / part / path.name.lstrip("."), content_of(path))
        return self._report(subject, found)

    def erase(self, subject: Subject) -> SubjectReport:
        """Delete the folders of a user with all files in them.

        Raises:
            CuratedError: a folder is being written, or cannot be deleted.
        """
        found: Counter[str] = Counter()
        for folder in self._folders(subject).values():
            with locked(folder, PATIENCE):
                found += self._held(folder)
                try:
                    shutil.rmtree(folder)
                except OSError as error:
                    raise MemoryUnwritable(
                        f"{folder} cannot be deleted ({error.strerror}); make it writable, and try again."
                    ) from error
        return self._report(subject, found)

    def _folders(self, subject: Subject) -> dict[str, Path]:
        """Return the folders of a user by their parts, also where profiles were kept per user once."""
        if subject.tenant is not None:
            return {}
        roots = {PROJECT_PART: self._layout.folder, PERSON_PART: self._layout.person}
        name = Path(USERS, user_folder(subject.user))
        found = {part: root / name for part, root in roots.items() if (root / name).is_dir()}
        return dict(_distinct(found))

    def _held(self, folder: Path) -> Counter[str]:
        store = self._layout.copy_at(folder)
        files = own_files(folder)
        return +Counter(
            {
                "entries": sum(len(store.read(each).page.entries) for each in BOTH),
                "changes": sum(len(store.changes(each)) for each in BOTH),
                "waiting writes": len(Queue(folder, BELIEVE_ALL).all()),
                "files": len(files),
            }
        )

    def _report(self, subject: Subject, found: Counter[str]) -> SubjectReport:
        whose = NO_TENANTS if subject.tenant is not None else None
        shared = None if self._settings.per_user else ONE_PROFILE
        return SubjectReport(
            places=found, unreached=tuple(each for each in (whose or shared, NOTES, OTHER_PROJECTS) if each)
        )


def _distinct(folders: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Yield each folder once, though two parts may lie in one place."""
    seen: set[Path] = set()
    for part, folder in folders.items():
        if folder not in seen:
            seen.add(folder)
            yield part, folder
