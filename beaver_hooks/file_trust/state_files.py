"""Whether the files of a state folder may be believed, for the host, its agent and, as `Setup.files`, its plugins.

What no index of git's lists was made here, by our own writes or by hand, and is believed. What is listed may change
with every `git pull`, so it is believed only as it was when we wrote it or the user confirmed it. A repository that
git cannot be asked about counts as one that lists everything.
"""

from collections.abc import Mapping
from pathlib import Path

from beaver_hooks.file_trust.git_index import GitIndexes
from beaver_hooks.file_trust.records import FileRecords, digest
from beaver_hooks.log import make_log
from beaver_hostspecs import ConfigurationError

OWN = frozenset({".gitignore", "config.json", "audit.key", "mcp.token", "memory-off.json"})
"""Files that are no text for a model, or that are confirmed in a way of their own."""

DATABASES = (".db", ".db-wal", ".db-shm", ".db-journal")
"""How a database ends, and what SQLite keeps beside it."""

UNREAD = (*DATABASES, ".lock", "ARCHIVE.jsonl")
"""How files end that grow or change all the time, so that no hash says anything of them."""


class StateFiles:
    """The files of one state folder, and of the folders that its configuration names instead.

    Each method may wait for a disk and for git: call them off the event loop.

    Args:
        folder: the state folder.
        environment: where git and the user's own state folder are found.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._indexes = GitIndexes(folder, environment)
        self.records = FileRecords(environment)

    def doubts(self, path: Path) -> bool:
        """Whether an index lists a file, or cannot be asked."""
        return self._indexes.lists(path) is not False

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content of a file was written here or confirmed. Takes note of a file of which it was not."""
        try:
            if self._is_known(path, content):
                return True
            self.records.meet(path)
        except ConfigurationError as error:
            make_log().warning("file_trust_unusable", problem=error.problem)
        return False

    def record(self, path: Path, content: bytes) -> None:
        """Record that this content is about to be written; what it replaces stays believed, if it was.

        Nothing is recorded of a file that no index lists.

        Raises:
            ConfigurationError: it cannot be recorded; then it must not be written.
        """
        if self.doubts(path):
            before = digest(_content(path))
            self.records.put(path, content, beside=self.records.hashes(path) & {before})

    def is_listed(self, path: Path) -> bool:
        """Whether an index lists a file for certain."""
        return self._indexes.lists(path) is True

    def listed(self) -> tuple[Path, ...]:
        """Return the files of the state folder that an index lists for certain."""
        return self._indexes.listed()

    def unbelieved(self, *folders: Path) -> dict[Path, bytes]:
        """Return the files in these folders that are not believed, with what they hold now.

        Raises:
            ConfigurationError: the record cannot be read.
        """
        met = {path for folder in folders for path in self.records.met(folder)}
        texts = {path for path in self.listed() if path.name not in OWN and not path.name.endswith(UNREAD)}
        contents = {path: _content(path) for path in sorted(met | texts)}
        return {path: content for path, content in contents.items() if not self._is_known(path, content)}

    def _is_known(self, path: Path, content: bytes) -> bool:
        return not content or not self.doubts(path) or digest(content) in self.records.hashes(path)


def _content(path: Path) -> bytes:
    """Return what a file holds; nothing where it is not there, cannot be read, or is a link."""
    try:
        return b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return b""
