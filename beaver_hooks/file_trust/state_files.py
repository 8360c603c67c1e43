"""Decides which files of a state folder are trusted, for the host, its agent and, as `Setup.files`, its plugins.

A file that no git index lists was made here, by the host or by hand, and is trusted. A listed file may change with
every `git pull`, so only the content that the host wrote or the user confirmed is trusted. If git is unavailable,
every file of the repository counts as listed.
"""

import hashlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from beaver_hooks.config.trust import change_record, read_record, record_path
from beaver_hooks.file_trust.git_index import GitIndexes
from beaver_hooks.log import make_log
from beaver_hostspecs import ConfigurationError
from beaver_toolkit.files import replace

OWN = frozenset({".gitignore", "config.json", "audit.key", "mcp.token", "memory-off.json"})
"""Files that are no text for a model, or that have a confirmation of their own."""

DATABASES = (".db", ".db-wal", ".db-shm", ".db-journal")
"""The suffixes of a database, and of SQLite's files beside it."""

UNREAD = (*DATABASES, ".lock", "ARCHIVE.jsonl")
"""The suffixes of files that change all the time, so that their hash is useless."""


class StateFiles:
    """The files of one state folder, and of the folders that its configuration names instead.

    Each method may wait for the disk and for git: call it off the event loop.

    Args:
        folder: the state folder.
        environment: the variables that locate git and the user's own state folder.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._indexes = GitIndexes(folder, environment)
        self.records = FileRecords(environment)

    def doubts(self, path: Path) -> bool:
        """Whether an index lists a file, or git is unavailable."""
        return self._indexes.lists(path) is not False

    def believes(self, path: Path, content: bytes) -> bool:
        """Whether this content of a file is trusted. Notes the file in the record if it is not."""
        try:
            if self._is_known(path, content):
                return True
            self.records.meet(path)
        except ConfigurationError as error:
            make_log().warning("file_trust_unusable", problem=error.problem)
        return False

    def record(self, path: Path, content: bytes) -> None:
        """Record that this content is about to be written; the replaced content stays trusted if it was.

        Records no file that no index lists.

        Raises:
            ConfigurationError: the content cannot be recorded; then it must not be written.
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
        """Return the files in these folders that are not trusted, with their content.

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
    """Return the content of a file; empty if it is missing, cannot be read, or is a link."""
    try:
        return b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return b""


class FileRecords:
    """The record of one user.

    Every method raises `ConfigurationError` if the record, or a file in `files/`, cannot be read or written.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        base = record_path(environment)
        self._path = base.with_name("trusted-files.json")
        self._copies = base.with_name("files")

    def hashes(self, path: Path) -> frozenset[str]:
        """Return the hashes of a file's trusted contents."""
        return frozenset(read_record(self._path).get(_key(path), "").split())

    def put(self, path: Path, content: bytes, *, beside: Collection[str] = ()) -> None:
        """Record a content, and keep a copy of it.

        Args:
            path: the file.
            content: the content that is trusted from now on.
            beside: hashes that stay trusted; all others are forgotten.
        """
        try:
            self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._copy(path), content)
        except OSError as error:
            raise ConfigurationError("", f"{self._copies} cannot be written ({error.strerror})") from None
        value = " ".join(sorted({digest(content), *beside}))
        change_record(self._path, lambda found: found.update({_key(path): value}))

    def meet(self, path: Path) -> None:
        """Note a file that is not trusted."""
        if _key(path) not in read_record(self._path):
            change_record(self._path, lambda found: found.update({_key(path): found.get(_key(path), "")}))

    def met(self, folder: Path) -> tuple[Path, ...]:
        """Return the files in a folder that were ever recorded or noted."""
        real = os.path.realpath(folder)
        return tuple(path for each in read_record(self._path) if (path := Path(each)).is_relative_to(real))

    def last(self, path: Path) -> bytes:
        """Return the last recorded content; empty if none was recorded."""
        try:
            return self._copy(path).read_bytes()
        except OSError:
            return b""

    def forget(self, path: Path) -> None:
        """Remove the hashes and the copy of a file."""
        self._copy(path).unlink(missing_ok=True)
        change_record(self._path, lambda found: _drop(found, _key(path)))

    def _copy(self, path: Path) -> Path:
        return self._copies / digest(os.fsencode(_key(path)))


def digest(content: bytes) -> str:
    """Return the hash of a content."""
    return hashlib.sha256(content).hexdigest()


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _drop(found: dict[str, str], key: str) -> None:
    found.pop(key, None)
